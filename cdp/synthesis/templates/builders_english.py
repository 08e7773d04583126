"""Diverse queries and paraphrases for an English document, from its clauses and key phrases."""

from __future__ import annotations

import heapq
import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, pairwise

from cdp.base.records import Document
from cdp.synthesis.templates import english_questions as questions
from cdp.synthesis.templates import frames as frames
from cdp.synthesis.templates.clauses import Clause, standing_alone
from cdp.synthesis.templates.english import FUNCTION_WORDS
from cdp.synthesis.templates.english_questions import BUILDERS, Candidate
from cdp.synthesis.templates.material import Material, content
from cdp.synthesis.templates.phrases import words
from cdp.synthesis.templates.presentable import LONGEST, is_presentable, plain

FORMATS = tuple(BUILDERS)
# Candidates of one format that are considered.
MOST = 40
# What it costs a candidate if all its word pairs stand in earlier queries, in points of score.
REPEATED = 5.0
SAME_SOURCE = 1.5
SAME_FORMAT = 3.0
# Points by which formats differ from document to document, so that a corpus gets all of them.
TASTE = 0.8
_ARTICLE = re.compile(r"^(?:an?|the)\s", re.IGNORECASE)


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """Queries in the eight formats, each on a sentence little used so far, in words little used so far.

    What a candidate is worth only ever falls while others are taken, so the best is found without looking at all of
    them: whichever leads with what it was worth when last looked at is looked at again, and taken if it still leads.
    """
    material = Material.of(document)
    taste = {name: rng.uniform(0, TASTE) for name in FORMATS}
    options = [_Option(name, candidate, taste[name]) for name in FORMATS for candidate in _best(material, name)]
    waiting = [(-option.most, at) for at, option in enumerate(_distinct(options)) if not option.passed_over]
    heapq.heapify(waiting)
    used: Counter[int] = Counter()
    formats: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    while waiting:
        worth, at = waiting[0]
        option = options[at]
        if not option.is_presentable:
            heapq.heappop(waiting)
            continue
        pairs = option.pairs
        now = (
            option.score(material)
            - SAME_SOURCE * used[option.source]
            - SAME_FORMAT * formats[option.format]
            - REPEATED * sum([pair in seen for pair in pairs]) / max(1, len(pairs))
        )
        if -now != worth:
            heapq.heapreplace(waiting, (-now, at))
            continue
        heapq.heappop(waiting)
        used[option.source] += 1
        formats[option.format] += 1
        seen.update(pairs)
        yield option.text
    yield from _last_resort(material)


class _Option:
    """A candidate as it would be shown. What costs time to know of it is found out when it is asked for."""

    passed_over = False
    """Whether an earlier option reads the same."""

    def __init__(self, name: str, candidate: Candidate, taste: float) -> None:
        self.format = name
        self.source = candidate.source
        self.text = candidate.text if name == "keyword" else _sentence_case(candidate.text)
        self._base = candidate.score + taste

    @property
    def most(self) -> float:
        """No option is worth more: ``specificity`` is 1 at most."""
        return self._base + 1.0

    @cached_property
    def is_presentable(self) -> bool:
        return is_presentable(self.text)

    def score(self, material: Material) -> float:
        """What it is worth before any other is taken."""
        if self._score is None:
            self._score = self._base + questions.specificity(self.text, material)
        return self._score

    _score: float | None = None

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The neighbouring words of the query, in small letters."""
        text = self.text
        return list(pairwise(words(text.lower()) if text.isascii() else [word.lower() for word in words(text)]))


def _best(material: Material, name: str) -> list[Candidate]:
    return sorted(_built(material, name), key=lambda candidate: -candidate.score)[:MOST]


def _distinct(options: list[_Option]) -> list[_Option]:
    """The same options, with those passed over that differ in case only from an earlier presentable one."""
    by_text: dict[str, _Option] = {}
    for option in options:
        earlier = by_text.setdefault(option.text.lower(), option)
        if earlier is not option:
            if earlier.is_presentable:
                option.passed_over = True
            else:
                by_text[option.text.lower()] = option
    return options


def _built(material: Material, name: str) -> Iterator[Candidate]:
    if name in frames.PHRASES and name != "comparison":
        return chain(BUILDERS[name](material), questions.phrase_questions(material, name))
    return BUILDERS[name](material)


def _last_resort(material: Material) -> Iterator[str]:
    """The document's own words, for one that gives nothing better."""
    for text in (*(plain(sentence) for sentence in material.sentences), *material.phrases):
        yield " ".join(text.split()[:LONGEST])
    if not material.sentences:
        yield " ".join(material.title.split()[:LONGEST])


def paraphrases(document: Document, rng: random.Random) -> Iterator[str]:
    """One question about the document in up to 20 wordings: what its first good clause says, and why or how it holds.

    It holds what this passage says, so that the passages of one title do not all get the same queries.
    """
    material = Material.of(document)
    chosen, values = _main_question(material)
    values["n"] = _ARTICLE.sub("", values.get("x", ""))
    rest = rng.sample(chosen[1:], len(chosen) - 1)
    for frame in (chosen[0], *rest):
        text = _sentence_case(re.sub(r"\{(\w+)\}", lambda match: values[match[1]], frame))
        if len(text.split()) <= LONGEST + 8:
            yield text
    yield from _last_resort(material)


def _main_question(material: Material) -> tuple[tuple[str, ...], dict[str, str]]:
    """The wordings of the document's main question and what is put into them."""
    clause = _main_clause(material)
    if clause is not None:
        head = clause.inverted[0]
        if questions.is_definition(clause) and questions.is_person(clause):
            return frames.PERSON, {"x": clause.subject, "be": clause.verb}
        named = not material.title or content(clause.subject) & content(material.topic)
        if named and questions.is_definition(clause) and clause.subject.islower():
            return frames.DEFINITION, {"x": clause.subject, "be": clause.verb}
        for answer, wordings in ((questions.REASON, frames.REASONS), (questions.MEANS, frames.WAYS)):
            match = answer.search(f" {clause.rest} ")
            before = questions.before_answer(clause, match) if match else None
            if before is not None and not (wordings is frames.WAYS and questions.is_state(clause)):
                declared = " ".join(part for part in (clause.subject, clause.adverb, clause.verb, before) if part)
                return wordings, {"inv": f"{head} {before}", "dec": declared}
        return frames.CLAIM, {"dec": clause.declarative}
    for sentence in material.sentences:
        alone = standing_alone(sentence)
        if 4 <= len(alone.split()) <= LONGEST and questions.is_whole(alone) and is_presentable(alone):
            return frames.SENTENCE, {"s": alone}
    names = [material.named(phrase) for phrase in material.phrases[:2]]
    if material.topic:
        names = [material.about, *(name for name in names if not content(name) & content(material.topic))][:2]
    return (frames.ABOUT, {"x": " and ".join(names)}) if names else (("{x}",), {"x": material.title})


def _main_clause(material: Material) -> Clause | None:
    """The first presentable clause about the topic that gives a reason or a means or says much; else any such one."""
    clauses = [
        clause
        for clause in material.clauses
        if is_presentable(_sentence_case(clause.declarative)) and not questions.points_back(clause.rest)
    ]
    full = [clause for clause in clauses if len(clause.declarative.split()) >= 6] or clauses
    return max(full, key=lambda clause: _main_worth(clause, material), default=None)


def _main_worth(clause: Clause, material: Material) -> float:
    """How well a clause serves as what the document is about: it speaks of the topic, says what the title says, names
    things, and comes early."""
    topical = bool(content(clause.subject) & (content(material.topic) - FUNCTION_WORDS))
    shared = content(clause.declarative) & (content(material.title) - FUNCTION_WORDS)
    return (
        1.5 * topical
        + 0.6 * min(len(shared), 4)
        + questions.specificity(clause.declarative, material)
        - 0.15 * min(clause.index, 10)
    )


def _sentence_case(text: str) -> str:
    text = " ".join(text.split())
    if text.endswith(" ?"):
        text = f"{text[:-2]}?"
    return text[:1].upper() + text[1:]
