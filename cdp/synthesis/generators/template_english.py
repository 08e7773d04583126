"""Diverse queries and paraphrases for an English document, from its clauses and key phrases."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from cdp.records import Document
from cdp.synthesis.generators.english import BASE_FORM, FUNCTION_WORDS, PREPOSITIONS, STATES, WEAK_VERBS
from cdp.synthesis.generators.phrases import Clause, clauses, is_plural, key_phrases, sentences, shorten, words
from cdp.synthesis.generators.template_frames import ABOUT, DEFINITION, PHRASES, REASONS, WAYS

FORMATS = ("what", "how", "why", "when", "keyword", "statement", "verify", "comparison")
MOST = 40
"""Candidates of one format that are considered."""
REPEATED = 5.0
"""What it costs a candidate if all its word pairs stand in earlier queries, in points of score."""
SAME_SOURCE = 2.0
ARTICLES = ("a", "an", "the")
_ARTICLE = re.compile(r"^(?:an?|the)\s", re.IGNORECASE)

_REASON = re.compile(r"\s(?:because|since|due to|thanks to|in order to|so that|to prevent|to avoid)\s", re.IGNORECASE)
_CONDITION = re.compile(
    r"\s(?:when|if|until|once|whenever|after|before|during|(?:in|since|until) (?:the )?\d{3,4}s?)(?=\s|$)",
    re.IGNORECASE,
)
_MEANS = re.compile(r"\s(?:by \w+ing|through|using|with the help of|by means of)\s", re.IGNORECASE)
_NOUN_START = re.compile(r"^(?:an?|the|one of)\s", re.IGNORECASE)
_PASSIVE = re.compile(r"^(?:\w+ly\s)?(?:\w+ed|made|built|found|known|held|grown|kept|written|given|taken|set|sold)\b")


@dataclass(frozen=True)
class Candidate:
    """One possible query. ``source`` is the sentence that answers it; a higher score reads better."""

    text: str
    source: int
    score: float


@dataclass(frozen=True)
class Material:
    """What the queries of one document are built from."""

    topic: str
    clauses: list[Clause]
    phrases: list[str]
    sentences: list[str]
    known: dict[str, tuple[str, int]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, document: Document) -> Material:
        phrases = key_phrases(f"{document.title}\n{document.text}")
        topic = _topic(document, phrases)
        return cls(topic, clauses(document.text, topic), phrases, sentences(document.text))

    @property
    def about(self) -> str:
        """The topic as it stands in a sentence, with the article that the text gives it."""
        return self.named(self.topic)

    def named(self, phrase: str) -> str:
        """The phrase as it stands within a sentence: with the article of its first use, and with a small letter where
        only a sentence's beginning gave it a capital one."""
        return self._found(phrase)[0]

    def where(self, phrase: str) -> int:
        """The first sentence that holds the phrase."""
        return self._found(phrase)[1]

    def _found(self, phrase: str) -> tuple[str, int]:
        if phrase not in self.known:
            lowered = phrase.lower()
            at = next((i for i, sentence in enumerate(self.sentences) if lowered in sentence.lower()), None)
            self.known[phrase] = (phrase, 0) if at is None or not phrase else (_named(phrase, self.sentences[at]), at)
        return self.known[phrase]


def _named(phrase: str, sentence: str) -> str:
    """``phrase`` with the article that it has in ``sentence``, and as it would stand after another word."""
    first, *rest = phrase.split()
    if first.istitle() and rest and all(word.islower() for word in rest):
        phrase = f"{first.lower()} {' '.join(rest)}"
    before = ["", "", *sentence[: sentence.lower().find(phrase.lower())].lower().split()][-2:]
    article = before[1] if before[1] in ARTICLES else before[0] if before[0] == "the" and before[1].isalpha() else ""
    return f"{article} {phrase}".lstrip()


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """Queries in the eight formats by turns, each on a sentence little used so far, in words little used so far."""
    material = Material.of(document)
    pools = {
        name: sorted(build(material), key=lambda candidate: -candidate.score)[:MOST]
        for name, build in _BUILDERS.items()
    }
    order = ["what", *rng.sample(FORMATS[1:], len(FORMATS) - 1)]
    used: Counter[int] = Counter()
    taken: set[str] = set()
    seen: set[tuple[str, str]] = set()

    @cache
    def pairs_of(text: str) -> list[tuple[str, str]]:
        return _pairs(text)

    def worth(candidate: Candidate) -> float:
        pairs = pairs_of(candidate.text)
        repeated = sum(pair in seen for pair in pairs) / max(1, len(pairs))
        return candidate.score - SAME_SOURCE * used[candidate.source] - REPEATED * repeated

    while any(pools.values()):
        for name in order:
            pool = [candidate for candidate in pools[name] if candidate.text.lower() not in taken]
            pools[name] = pool
            if pool:
                best = max(pool, key=worth)
                used[best.source] += 1
                taken.add(best.text.lower())
                seen.update(pairs_of(best.text))
                yield _sentence_case(best.text) if name != "keyword" else best.text


def _topic(document: Document, phrases: list[str]) -> str:
    """What the document is about: its title where that is a name and not a sentence, else its best key phrase."""
    title = " ".join(re.sub(r"\([^()]*\)", " ", document.title.replace("_", " ")).strip(" .?!").split())
    first = title.split()[0].lower() if title else ""
    if title and len(title.split()) <= 6 and first not in {"how", "why", "what", "when", "where", "who", "which", "is"}:
        lower = title[0].lower() + title[1:]
        return lower if lower.split()[0] in words(document.text) else title
    return phrases[0] if phrases else title


def _what(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        head, rest = clause.inverted
        if clause.auxiliary and clause.verb in ("is", "are", "was", "were"):
            if _is_definition(clause):
                yield Candidate(f"What {head}?", clause.index, 4)
        elif (
            not clause.auxiliary
            and BASE_FORM[clause.verb] not in WEAK_VERBS
            and rest.split()[0].lower() not in FUNCTION_WORDS - {"a", "an", "the"}
        ):
            yield Candidate(f"What {head}?", clause.index, 3)
    yield from _on_phrases(material, "what", 1.0)


def _how(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        head, rest = clause.inverted
        if _is_state(clause):
            continue
        means = _MEANS.search(f" {rest} ")
        yield Candidate(f"How {head} {_before(clause, means)}?", clause.index, 4 if means else 2)
    yield from _on_phrases(material, "how", 0.8)


def _why(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        if _is_definition(clause):
            continue
        head, rest = clause.inverted
        reason = _REASON.search(f" {rest} ") or None
        score = 4 if reason else 3 if _REASON.search(clause.sentence) else 1.5
        yield Candidate(f"Why {head} {_before(clause, reason)}?", clause.index, score)
    yield from _on_phrases(material, "why", 0.7)


def _when(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        head, rest = clause.inverted
        condition = _CONDITION.search(f" {rest} ")
        if _is_definition(clause) or (_is_state(clause) and not condition):
            continue
        score = 4 if condition else 2.5 if _CONDITION.search(clause.sentence) else 0.3
        yield Candidate(f"When {head} {_before(clause, condition)}?", clause.index, score)
    for index, sentence in enumerate(material.sentences):
        opening = re.match(r"(If|When|Once|After|Before)\s([^,]{8,80}),\s", sentence)
        if opening:
            yield Candidate(f"What happens {opening[1].lower()} {opening[2]}?", index, 5)
    yield from _on_phrases(material, "when", 0.5)


def _keyword(material: Material) -> Iterator[Candidate]:
    for rank, phrase in enumerate(material.phrases[:20]):
        score, index = 2 - rank / 20, material.where(phrase)
        both = [word for word in f"{material.topic} {phrase}".split() if word.lower() not in FUNCTION_WORDS]
        merged = list({word.lower(): word.lower() if not word.isupper() else word for word in both}.values())
        if len(phrase.split()) < 3 and 2 <= len(merged) <= 5:
            yield Candidate(" ".join(merged), index, score + 0.5)
        if 2 <= len(phrase.split()) <= 5:
            yield Candidate(phrase.lower(), index, score)


def _statement(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        yield Candidate(clause.declarative, clause.index, 3 if 3 <= len(clause.rest.split()) <= 10 else 2)
    for index, sentence in enumerate(material.sentences):
        text = shorten(sentence, 12)
        if len(text.split()) >= 4:
            yield Candidate(text, index, 0.5)


def _verify(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        yield Candidate(f"Is it true that {clause.declarative}?", clause.index, 2)
    yield from _on_phrases(material, "verify", 0.5)


def _comparison(material: Material) -> Iterator[Candidate]:
    heads = [(clause.subject, clause.index) for clause in material.clauses if len(clause.subject.split()) <= 4]
    for (one, _), (two, index) in pairwise(heads):
        if not _overlap(one, two):
            verb = "do" if is_plural(one) else "does"
            yield Candidate(f"How {verb} {one} differ from {two}?", index, 2)
    for rank, (first, second) in enumerate(pairwise(material.phrases[:15])):
        if not _overlap(first, second):
            for place, frame in enumerate(PHRASES["comparison"]):
                text = frame.format(p=material.named(first), q=material.named(second))
                yield Candidate(text, material.where(second), 1 - rank / 20 - place / 100)


def _on_phrases(material: Material, name: str, score: float) -> Iterator[Candidate]:
    """Questions of one format about each key phrase that is not the topic itself, best phrases and wordings first."""
    topic, about = material.topic.lower(), material.about
    for rank, phrase in enumerate(material.phrases[:12]):
        if phrase.lower() in topic or topic in phrase.lower():
            continue
        many = is_plural(phrase)
        values = {
            "p": material.named(phrase), "t": about, "be": "are" if many else "is", "do": "do" if many else "does",
            "Do": "Do" if is_plural(about) else "Does",
        }  # fmt: skip
        proper = any(word[:1].isupper() for word in phrase.split())  # a name: who or what it is cannot be told
        for place, frame in enumerate(PHRASES[name][1 if name == "what" and proper else 0 :]):
            yield Candidate(frame.format(**values), material.where(phrase), score - rank / 20 - place / 100)


_BUILDERS = {
    "what": _what,
    "how": _how,
    "why": _why,
    "when": _when,
    "keyword": _keyword,
    "statement": _statement,
    "verify": _verify,
    "comparison": _comparison,
}


def _is_definition(clause: Clause) -> bool:
    """Whether the clause says what something is: "X is a …", or "X are …" with a noun phrase of some length."""
    if clause.verb not in ("is", "are", "was", "were") or _PASSIVE.match(clause.rest):
        return False
    plural = clause.verb in ("are", "were") and len(clause.rest.split()) >= 3
    return bool(_NOUN_START.match(clause.rest)) or (plural and clause.rest.split()[0] not in FUNCTION_WORDS)


def _before(clause: Clause, match: re.Match[str] | None) -> str:
    """The clause's rest up to the words that already give the answer; all of it where no question would be left."""
    if match is None:
        return clause.rest
    parts = clause.rest[: max(0, match.start() - 1)].strip(" ,").split()
    while parts and parts[-1].lower() in PREPOSITIONS:
        parts.pop()
    kept = " ".join(parts)
    return clause.rest if clause.auxiliary and not kept else kept


def _is_state(clause: Clause) -> bool:
    """Whether the clause tells how something is and not what happens, so that nobody asks how or when."""
    if clause.auxiliary:
        return clause.verb in ("is", "are", "was", "were") and not _PASSIVE.match(clause.rest)
    return BASE_FORM[clause.verb] in STATES


def _pairs(text: str) -> list[tuple[str, str]]:
    """The neighbouring words of a query."""
    return list(pairwise(word.lower() for word in words(text)))


def _overlap(one: str, two: str) -> bool:
    return bool({word.lower() for word in words(one)} & {word.lower() for word in words(two)} - FUNCTION_WORDS)


def _sentence_case(text: str) -> str:
    text = re.sub(r"\s+\?$", "?", " ".join(text.split()))
    return text[:1].upper() + text[1:]


def paraphrases(document: Document, rng: random.Random) -> list[str]:
    """The document's main question in up to 20 wordings: what the topic is, why or how its first clause holds."""
    material = Material.of(document)
    topic, found = material.topic, material.clauses
    if not topic and not found:
        return []
    main = _main_clause(found, topic)
    if main is None or (_is_state(main) and not main.auxiliary):
        frames, values = ABOUT, {"x": material.about if topic else main.subject if main else ""}
    elif _is_definition(main):
        frames, values = DEFINITION, {"x": main.subject, "be": main.verb}
    else:
        why = _REASON.search(main.sentence) or (main.auxiliary and not _PASSIVE.match(main.rest))
        rest = _before(main, (_REASON if why else _MEANS).search(f" {main.rest} "))
        head = main.inverted[0]
        declared = " ".join(part for part in (main.subject, main.adverb, main.verb, rest) if part)
        frames, values = (REASONS if why else WAYS), {"inv": f"{head} {rest}", "dec": declared}
    values["n"] = _ARTICLE.sub("", values.get("x", ""))
    rest_of_frames = rng.sample(frames[1:], len(frames) - 1)
    return [_sentence_case(_insert(frame, values)) for frame in (frames[0], *rest_of_frames)]


def _main_clause(found: list[Clause], topic: str) -> Clause | None:
    """The first clause about the topic; without a topic the first of all."""
    about = (clause for clause in found if not topic or _overlap(clause.subject, topic))
    return next(about, None)


def _insert(frame: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], frame)
