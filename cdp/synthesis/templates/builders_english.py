"""Diverse queries and paraphrases for an English document, from its clauses and key phrases."""

from __future__ import annotations

import heapq
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise

from cdp.base.records import Document
from cdp.synthesis.templates.clauses import Clause, Material, content, is_plural, standing_alone
from cdp.synthesis.templates.english import (
    BASE_FORM,
    FRAMES,
    FUNCTION_WORDS,
    NOT_LAST,
    PARTICIPLES,
    PHRASES,
    POINTING,
    PREPOSITIONS,
    ROLES,
    STATES,
    VAGUE_HEADS,
    WEAK_VERBS,
)
from cdp.synthesis.templates.phrases import LONGEST, is_presentable, plain, words

BE = ("is", "are", "was", "were")
REASON = re.compile(r"\s(?:because|due to|thanks to|in order to|so that|to prevent|to avoid)\s", re.IGNORECASE)
MEANS = re.compile(r"\s(?:by \w+ing|using|with the help of|by means of)\s", re.IGNORECASE)
_CONDITION = re.compile(
    r"\s(?:when|if|until|once|whenever|after|before|during|(?:in|since|until|on) (?:the )?(?:early |late )?"
    r"(?:\d{3,4}s?|\d{1,2} [A-Z]\w+|(?:January|February|March|April|May|June|July|August|September|October|November"
    r"|December)\b))(?=\s|$)"
)
_PLACE = re.compile(r"\s(?:in|at|near) (?:the )?(?=[A-Z][a-z])")
_PLACED = frozenset(
    [
        "born",
        "located",
        "situated",
        "held",
        "built",
        "founded",
        "based",
        "buried",
        "killed",
        "filmed",
        "formed",
        "established",
    ]
)
_AGENT = re.compile(r"^(\w+) by ((?:the )?[A-Z][\w.'’-]+(?: (?:[A-Z][\w.'’-]*|of|de|van|von|and))*)(?P<tail>.*)$")
_COUNT = re.compile(
    r"^(?:over |about |around |nearly )?(\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) "
    r"((?:[a-z-]+ )?[a-z]+s)\b(?P<tail>.*)$"
)
_ARTICLE = re.compile(r"^(?:an?|the)\s")
_CIRCUMSTANCES = frozenset(["in", "at", "on", "during", "for", "after", "before"])
_PRONOUN_SUBJECT = re.compile(r"\b(?:he|she|they|we|you|I)\b|(?:^|[,;] )(?:it|its|their)\b", re.IGNORECASE)
_THAN = re.compile(r"\bthan (?:in |with |for )?(.+)$")
_COMPARED = re.compile(r"\b(?:more|less|fewer|\w+er|better|worse|greater) than\b|\brather than\b")
_NOUN_START = re.compile(r"^(?:an?|the|one of)\s", re.IGNORECASE)
_PASSIVE = re.compile(r"^(?:\w+ly\s)?(?:\w+ed|made|built|found|known|held|grown|kept|written|given|taken|set|sold)\b")
_LIFE = re.compile(r"\b(?:born|died|née)\b|\d{4}\s?[–-]\s?(?:\d{1,2} )?[A-Z][a-z]+ ")
_HEAD_END = re.compile(
    r",|\s(?:of|in|on|at|for|from|with|to|that|which|who|whose|by|and|as|\w+ed|known|made|built|written)\b"
)


@dataclass(frozen=True)
class Candidate:
    """One possible query. ``source`` is the sentence that answers it; a higher score reads better."""

    text: str
    source: int
    score: float


def what(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        head = clause.inverted[0]
        if is_definition(clause):
            if is_person(clause):
                yield Candidate(f"Who {clause.verb} {clause.subject}?", clause.index, 3.2)
            elif kind := kind_of(clause):
                yield Candidate(f"What kind of {kind} {clause.verb} {clause.subject}?", clause.index, 3)
            elif not clause.subject[:1].isupper() and len(clause.subject.split()) <= 4:
                yield Candidate(f"What {head}?", clause.index, 3)
        elif agent := _agent(clause):
            verb, tail = agent
            yield Candidate(f"Who {verb} {clause.subject}{tail}?", clause.index, 3.5)
        elif tail := _after_object(clause):
            yield Candidate(f"What {head} {tail}?", clause.index, 2.8)


def how(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        head, rest = clause.inverted
        means = MEANS.search(f" {rest} ")
        if means and not is_state(clause) and (before := before_answer(clause, means)) is not None:
            yield Candidate(f"How {head} {before}?", clause.index, 4)
        count = _COUNT.match(rest)
        if count and not clause.auxiliary and "and" not in count["tail"].split()[:1]:
            base = f"How many {count[2]} {head}{count['tail']}?"
            yield Candidate(base, clause.index, 3.4)


def why(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        reason = REASON.search(f" {clause.rest} ")
        if reason and not is_definition(clause) and (before := before_answer(clause, reason)) is not None:
            yield Candidate(f"Why {clause.inverted[0]} {before}?", clause.index, 4)
        elif REASON.search(clause.sentence) and not is_definition(clause) and _reason_follows(clause):
            yield Candidate(f"Why {clause.inverted[0]} {clause.rest}?", clause.index, 3.5)


def _reason_follows(clause: Clause) -> bool:
    """Whether the reason stands right behind what the clause kept of its sentence."""
    at = clause.sentence.find(clause.rest)
    return at >= 0 and bool(REASON.match(clause.sentence[at + len(clause.rest) :].replace(",", "", 1)))


def when(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        head, rest = clause.inverted
        condition = _CONDITION.search(f" {rest} ")
        if (
            condition
            and not clause.adverb
            and not is_definition(clause)
            and (before := before_answer(clause, condition)) is not None
        ):
            yield Candidate(f"When {head} {before}?", clause.index, 3.6)
        location = _PLACE.search(f" {rest} ")
        if (
            location
            and clause.verb in BE
            and rest.split()[0] in _PLACED
            and (before := before_answer(clause, location))
        ):
            yield Candidate(f"Where {head} {before}?", clause.index, 3.3)
    for index, sentence in enumerate(material.sentences):
        opening = re.match(r"(If|When|Once|After)\s([^,]{8,80}),\s", sentence)
        if opening and opening[2].split()[0].lower() not in POINTING and not _points(opening[2]):
            yield Candidate(f"What happens {opening[1].lower()} {opening[2]}?", index, 3.5)


def keyword(material: Material) -> Iterator[Candidate]:
    topic = material.topic.split()
    for rank, phrase in enumerate(material.phrases[:20]):
        score, index = 2.6 - rank / 20, material.where(phrase)
        phrase = _ARTICLE.sub("", material.named(phrase))
        merged = [*topic, *(word for word in phrase.split() if word.lower() not in content(material.topic))]
        if content(phrase) <= content(material.topic):
            continue
        if 2 <= len(merged) <= 6 and len(merged) > len(topic):
            yield Candidate(" ".join(merged), index, score)
        if len(phrase.split()) >= 3:
            yield Candidate(phrase, index, score - 1.5)


def statement(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        if points_back(clause.rest):
            continue
        yield Candidate(clause.declarative, clause.index, 2.7 if len(clause.rest.split()) >= 4 else 1.5)
    for index, sentence in enumerate(material.sentences):
        alone = standing_alone(sentence)
        if alone.startswith(("The ", "Both ")) and not names_something(alone, material):
            title = material.title
            if title and len(title.split()) <= 6 and 6 <= len(alone.split()) <= 20 and is_whole(alone):
                yield Candidate(f"{title}: {alone[0].lower()}{alone[1:]}", index, 2)
        elif 6 <= len(alone.split()) <= 22 and is_whole(alone):
            yield Candidate(alone, index, 3)


def verify(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        head, rest = clause.inverted
        yield Candidate(f"Is it true that {clause.declarative}?", clause.index, 1.8)
        if len(rest.split()) >= 3 and not (clause.verb in BE and rest.split()[0].lower() in PREPOSITIONS):
            yield Candidate(f"{head} {rest}?", clause.index, 2.2)


def comparison(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        other = _THAN.search(clause.rest) if _COMPARED.search(clause.rest) else None
        if other and _is_thing(other[1].split()[0].lower()):
            verb = "do" if is_plural(clause.subject) else "does"
            yield Candidate(f"How {verb} {clause.subject} compare with {other[1]}?", clause.index, 2.9)
    heads = [(clause.subject, clause.index) for clause in material.clauses if len(clause.subject.split()) <= 4]
    for (subject, _), (next_subject, index) in pairwise(heads):
        if (
            not content(subject) & content(next_subject) - FUNCTION_WORDS
            and subject[:1].isupper() == next_subject[:1].isupper()
        ):
            verb = "do" if is_plural(subject) else "does"
            yield Candidate(f"How {verb} {subject} differ from {next_subject}?", index, -2.5)
    for rank, (first, second) in enumerate(pairwise(material.phrases[:15])):
        if not content(first) & content(second) and len(first.split()) > 1 and len(second.split()) > 1:
            for frame_rank, frame in enumerate(PHRASES["comparison"]):
                text = frame.format(p=material.named(first), q=material.named(second))
                yield Candidate(text, material.where(second), -4 - rank / 20 - frame_rank / 100)


def phrase_questions(material: Material, name: str) -> Iterator[Candidate]:
    """Plain questions about a key phrase beside the topic: where a document has no clause left for a format."""
    if not material.topic:
        return
    for rank, phrase in enumerate(material.phrases[:12]):
        if content(phrase) & content(material.topic) or len(phrase) < 4:
            continue
        values = {"p": material.named(phrase), "t": material.about, "be": "are" if is_plural(phrase) else "is"}
        for frame_rank, frame in enumerate(PHRASES[name]):
            yield Candidate(frame.format(**values), material.where(phrase), -4 - rank / 20 - frame_rank / 50)


def _is_thing(first: str) -> bool:
    """Whether a phrase with this first word may name something to compare with."""
    return first not in POINTING | PREPOSITIONS and first[0].isalpha() and not first.endswith(("ly", "ed"))


BUILDERS = {
    "what": what,
    "how": how,
    "why": why,
    "when": when,
    "keyword": keyword,
    "statement": statement,
    "verify": verify,
    "comparison": comparison,
}


def names_something(text: str, material: Material) -> bool:
    """Whether a query holds a name, or a word of the title: it can then be told what it is about."""
    inner = text.split()[1:]
    return any(word[:1].isupper() for word in inner) or bool(
        {word for word in content(text) if word not in FUNCTION_WORDS} & content(material.title)
    )


def specificity(text: str, material: Material) -> float:
    """From -1.5 for a query that could be about anything to 1 for one that names its subject and more."""
    title, topical, names, telling = material.title_words, False, 0, 0
    for word in text.rstrip("?").split()[1:]:
        lowered, named, long = _traits(word)
        topical = topical or lowered in title
        names += named
        telling += long
    points = 0.6 * topical + 0.4 * min(names, 2) + 0.25 * min(telling, 2)
    return min(1.0, points) if points else -1.5


@lru_cache(maxsize=1 << 16)
def _traits(word: str) -> tuple[str, bool, bool]:
    """A word in small letters, whether it is a name or number, and whether it is long enough to be telling; nothing of
    that for a function word. Kept from document to document: a corpus uses the same words again and again."""
    lowered = word.lower()
    if lowered in FUNCTION_WORDS:
        return "", False, False
    return lowered.strip(",:"), word[:1].isupper() or any(map(str.isdigit, word)), len(word) >= 9


def is_whole(sentence: str) -> bool:
    """Whether a sentence stands alone: a finite verb, and no subject that only the sentence before explains."""
    tokens = [token.lower().strip(",;") for token in sentence.split()]
    return (
        tokens[0] not in POINTING | PREPOSITIONS
        and _has_verb(tokens)
        and not points_back(sentence)
        and not _points(sentence)
        and sentence[-1:] != ":"
    )


def points_back(text: str) -> bool:
    """Whether a personal pronoun is the subject of something in it."""
    return bool(_PRONOUN_SUBJECT.search(text))


def _has_verb(tokens: list[str]) -> bool:
    return any(
        token in BASE_FORM or token in ("is", "are", "was", "were", "can", "may", "will", "must") for token in tokens
    )


def _points(text: str) -> bool:
    """Whether a personal pronoun or "this …" stands where only the text before says what is meant."""
    tokens = [token.lower().strip(",;'\"") for token in text.split()[:4]]
    return any(token in ("it", "they", "he", "she", "we", "i", "you", "this", "these", "our", "my") for token in tokens)


def is_definition(clause: Clause) -> bool:
    """Whether the clause says what something is: "X is a …", or "X are …" with a noun phrase of some length."""
    if clause.verb not in BE or _PASSIVE.match(clause.rest):
        return False
    plural = clause.verb in ("are", "were") and len(clause.rest.split()) >= 3
    return bool(_NOUN_START.match(clause.rest)) or (plural and clause.rest.split()[0] not in FUNCTION_WORDS)


def is_person(clause: Clause) -> bool:
    """Whether the clause introduces somebody by name: by what they do, or by when they were born."""
    name = clause.subject.split()
    if len(name) < 2 or not (name[0][:1].isupper() and name[-1][:1].isupper()) or clause.verb not in ("is", "was"):
        return False
    described = re.split(r"\s(?:of|in|on|at|for|from|with|by|that|which|who)\s", clause.rest)[0]
    return bool(content(described) & ROLES) or bool(
        _LIFE.search(clause.sentence[:160].partition("(")[2].partition(")")[0])
    )


def kind_of(clause: Clause) -> str:
    """The noun that "X is a …" ends with: "film" in "a 1916 silent drama film directed by"; "" where it says little."""
    if not re.match(r"(?:an?|the)\s", clause.rest) or clause.verb not in ("is", "was"):
        return ""
    phrase = _HEAD_END.split(clause.rest.split(None, 1)[1])[0].split()
    head = phrase[-1] if len(phrase) > 1 else ""
    return head if head.islower() and head.isalpha() and head not in VAGUE_HEADS | NOT_LAST else ""


def _agent(clause: Clause) -> tuple[str, str] | None:
    """("directed", " in 1916") of "was directed by Ann Lee in 1916", where the agent is named."""
    match = _AGENT.match(clause.rest) if clause.verb in BE else None
    if match is None:
        return None
    participle = match[1]
    past = PARTICIPLES.get(participle) or (participle if participle.endswith("ed") else "")
    tail = match["tail"]
    return (past, tail if not tail or tail.split()[0].lower() in PREPOSITIONS else "") if past else None


def _after_object(clause: Clause) -> str:
    """What follows the object of "X published its report in 1999", for "What did X publish in 1999?"; "" if nothing."""
    tokens = clause.rest.split()
    if clause.auxiliary or BASE_FORM[clause.verb] in WEAK_VERBS | STATES or tokens[0].lower() not in ("a", "an", "the"):
        return ""
    at = next((i for i, token in enumerate(tokens) if i > 1 and token.lower() in PREPOSITIONS), 0)
    return " ".join(tokens[at:]) if at and tokens[at].lower() in _CIRCUMSTANCES else ""


def before_answer(clause: Clause, match: re.Match[str]) -> str | None:
    """The clause's rest up to the words that give the answer; None where no question would be left."""
    parts = clause.rest[: max(0, match.start() - 1)].strip(" ,").split()
    while parts and parts[-1].lower() in PREPOSITIONS | {"and", "or", "only", "just"}:
        parts.pop()
    weak = clause.auxiliary or BASE_FORM[clause.verb] in WEAK_VERBS - {"begin", "live"}
    return None if weak and not parts else " ".join(parts)


def is_state(clause: Clause) -> bool:
    """Whether the clause tells how something is and not what happens, so that nobody asks how or when."""
    if clause.auxiliary:
        return clause.verb in BE and not _PASSIVE.match(clause.rest)
    return BASE_FORM[clause.verb] in STATES


FORMATS = tuple(BUILDERS)
# Candidates of one format that are considered.
MOST = 40
# What it costs a candidate if all its word pairs stand in earlier queries, in points of score.
REPEATED = 5.0
SAME_SOURCE = 1.5
SAME_FORMAT = 3.0
# Points by which formats differ from document to document, so that a corpus gets all of them.
TASTE = 0.8
_LEADING_ARTICLE = re.compile(r"^(?:an?|the)\s", re.IGNORECASE)


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
            self._score = self._base + specificity(self.text, material)
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
    if name in PHRASES and name != "comparison":
        return chain(BUILDERS[name](material), phrase_questions(material, name))
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
    values["n"] = _LEADING_ARTICLE.sub("", values.get("x", ""))
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
        if is_definition(clause) and is_person(clause):
            return FRAMES["person"], {"x": clause.subject, "be": clause.verb}
        named = not material.title or content(clause.subject) & content(material.topic)
        if named and is_definition(clause) and clause.subject.islower():
            return FRAMES["definition"], {"x": clause.subject, "be": clause.verb}
        for answer, wordings in ((REASON, FRAMES["reasons"]), (MEANS, FRAMES["ways"])):
            match = answer.search(f" {clause.rest} ")
            before = before_answer(clause, match) if match else None
            if before is not None and not (wordings is FRAMES["ways"] and is_state(clause)):
                declared = " ".join(part for part in (clause.subject, clause.adverb, clause.verb, before) if part)
                return wordings, {"inv": f"{head} {before}", "dec": declared}
        return FRAMES["claim"], {"dec": clause.declarative}
    for sentence in material.sentences:
        alone = standing_alone(sentence)
        if 4 <= len(alone.split()) <= LONGEST and is_whole(alone) and is_presentable(alone):
            return FRAMES["sentence"], {"s": alone}
    names = [material.named(phrase) for phrase in material.phrases[:2]]
    if material.topic:
        names = [material.about, *(name for name in names if not content(name) & content(material.topic))][:2]
    return (FRAMES["about"], {"x": " and ".join(names)}) if names else (("{x}",), {"x": material.title})


def _main_clause(material: Material) -> Clause | None:
    """The first presentable clause about the topic that gives a reason or a means or says much; else any such one."""
    clauses = [
        clause
        for clause in material.clauses
        if is_presentable(_sentence_case(clause.declarative)) and not points_back(clause.rest)
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
        + specificity(clause.declarative, material)
        - 0.15 * min(clause.index, 10)
    )


def _sentence_case(text: str) -> str:
    text = " ".join(text.split())
    if text.endswith(" ?"):
        text = f"{text[:-2]}?"
    return text[:1].upper() + text[1:]
