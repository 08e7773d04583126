"""Diverse queries and paraphrases for an English document, from its clauses and key phrases."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from cdp.records import Document
from cdp.synthesis.generators.english import FUNCTION_WORDS, PREPOSITIONS
from cdp.synthesis.generators.phrases import Clause, clauses, is_plural, key_phrases, sentences, shorten, words

FORMATS = ("what", "how", "why", "when", "keyword", "statement", "verify", "comparison")
MOST = 40
"""Candidates of one format that are considered."""

_REASON = re.compile(r"\s(?:because|since|due to|thanks to|in order to|so that|to prevent|to avoid)\s", re.IGNORECASE)
_CONDITION = re.compile(r"\s(?:when|if|until|once|whenever|after|before|during|in \d{4})(?=\s|$)", re.IGNORECASE)
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

    @classmethod
    def of(cls, document: Document) -> Material:
        phrases = key_phrases(f"{document.title}\n{document.text}")
        topic = _topic(document, phrases)
        return cls(topic, clauses(document.text, topic), phrases, sentences(document.text))

    def where(self, phrase: str) -> int:
        """The first sentence that holds the phrase."""
        lowered = phrase.lower()
        return next((i for i, sentence in enumerate(self.sentences) if lowered in sentence.lower()), 0)


def diverse(document: Document, rng: random.Random) -> list[str]:
    """Queries in the eight formats by turns, each after the sentence that is least used so far."""
    material = Material.of(document)
    pools = {
        name: sorted(build(material), key=lambda candidate: -candidate.score)[:MOST]
        for name, build in _BUILDERS.items()
    }
    order = ["what", *rng.sample(FORMATS[1:], len(FORMATS) - 1)]
    used: Counter[int] = Counter()
    taken: set[str] = set()
    queries: list[str] = []
    while any(pools.values()):
        for name in order:
            pool = [candidate for candidate in pools[name] if candidate.text.lower() not in taken]
            pools[name] = pool
            if pool:
                best = max(pool, key=lambda candidate: candidate.score - 2 * used[candidate.source])
                used[best.source] += 1
                taken.add(best.text.lower())
                queries.append(_sentence_case(best.text) if name != "keyword" else best.text)
    return queries


def _topic(document: Document, phrases: list[str]) -> str:
    """What the document is about: its title where that is a name and not a sentence, else its best key phrase."""
    title = re.sub(r"\s*\([^)]*\)", "", document.title.replace("_", " ")).strip(" .?!")
    first = title.split()[0].lower() if title else ""
    if title and len(title.split()) <= 6 and first not in {"how", "why", "what", "when", "where", "who", "which", "is"}:
        lower = title[0].lower() + title[1:]
        return lower if lower.split()[0] in document.text.split() else title
    return phrases[0] if phrases else title


def _what(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        head, rest = clause.inverted
        if clause.auxiliary and clause.verb in ("is", "are", "was", "were"):
            if _is_definition(clause):
                yield Candidate(f"What {head}?", clause.index, 4)
        elif not clause.auxiliary and rest.split()[0].lower() not in FUNCTION_WORDS - {"a", "an", "the"}:
            yield Candidate(f"What {head}?", clause.index, 3)
    for rank, phrase in enumerate(material.phrases[:12]):
        if phrase.lower() not in material.topic.lower() and material.topic.lower() not in phrase.lower():
            text = f"What {_be(phrase)} {phrase} in the context of {material.topic}?"
            yield Candidate(text, material.where(phrase), 1 - rank / 20)


def _how(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        head, rest = clause.inverted
        if clause.auxiliary and clause.verb in ("is", "are", "was", "were") and not _PASSIVE.match(rest):
            continue
        means = _MEANS.search(f" {rest} ")
        yield Candidate(f"How {head} {_before(clause, means)}?", clause.index, 4 if means else 2)
    for rank, phrase in enumerate(material.phrases[:12]):
        if phrase.lower() not in material.topic.lower():
            text = f"How {_be(phrase)} {phrase} connected with {material.topic}?"
            yield Candidate(text, material.where(phrase), 0.8 - rank / 20)


def _why(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        if _is_definition(clause):
            continue
        head, rest = clause.inverted
        reason = _REASON.search(f" {rest} ") or None
        score = 4 if reason else 3 if _REASON.search(clause.sentence) else 1.5
        yield Candidate(f"Why {head} {_before(clause, reason)}?", clause.index, score)
    for rank, phrase in enumerate(material.phrases[:12]):
        if phrase.lower() not in material.topic.lower():
            verb = "do" if is_plural(phrase) else "does"
            text = f"Why {verb} {phrase} matter for {material.topic}?"
            yield Candidate(text, material.where(phrase), 0.7 - rank / 20)


def _when(material: Material) -> Iterator[Candidate]:
    for clause in material.clauses:
        if _is_definition(clause):
            continue
        head, rest = clause.inverted
        condition = _CONDITION.search(f" {rest} ")
        score = 4 if condition else 2.5 if _CONDITION.search(clause.sentence) else 0.9
        yield Candidate(f"When {head} {_before(clause, condition)}?", clause.index, score)
    for index, sentence in enumerate(material.sentences):
        opening = re.match(r"(If|When|Once|After|Before)\s([^,]{8,80}),\s", sentence)
        if opening:
            yield Candidate(f"What happens {opening[1].lower()} {opening[2]}?", index, 5)
    for rank, phrase in enumerate(material.phrases[:12]):
        if phrase.lower() not in material.topic.lower():
            verb = "do" if is_plural(phrase) else "does"
            yield Candidate(
                f"When {verb} {phrase} play a part in {material.topic}?", material.where(phrase), 0.5 - rank / 20
            )


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
    for rank, phrase in enumerate(material.phrases[:12]):
        if phrase.lower() not in material.topic.lower():
            text = f"Which facts connect {phrase} with {material.topic}?"
            yield Candidate(text, material.where(phrase), 0.5 - rank / 20)


def _comparison(material: Material) -> Iterator[Candidate]:
    heads = [(clause.subject, clause.index) for clause in material.clauses if len(clause.subject.split()) <= 4]
    for (one, _), (two, index) in pairwise(heads):
        if not _overlap(one, two):
            verb = "do" if is_plural(one) else "does"
            yield Candidate(f"How {verb} {one} differ from {two}?", index, 2)
    for rank, (first, second) in enumerate(pairwise(material.phrases[:15])):
        if not _overlap(first, second):
            text = f"{first} compared with {second}"
            yield Candidate(text, material.where(second), 1 - rank / 20)


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


def _be(phrase: str) -> str:
    return "are" if is_plural(phrase) else "is"


def _overlap(one: str, two: str) -> bool:
    return bool({word.lower() for word in words(one)} & {word.lower() for word in words(two)} - FUNCTION_WORDS)


def _sentence_case(text: str) -> str:
    text = re.sub(r"\s+\?$", "?", " ".join(text.split()))
    return text[:1].upper() + text[1:]


_DEFINITION = (
    "What {be} {x}?", "How would you define {x}?", "{x}: meaning and definition", "Can you explain what {x} {be}?",
    "Give a short description of {x}", "What is meant by {x}?", "In simple words, what {be} {x}?",
    "Which description fits {x}?", "Tell me what {x} {be}", "What exactly {be} {x}?", "definition of {x}",
    "How can {x} be described?", "I would like to know what {x} {be}", "What should one understand by {x}?",
    "Explain {x}", "What do people mean when they talk about {x}?", "What kind of thing {be} {x}?",
    "{x} explained", "Could you say what {x} {be}?", "What does the term {x} stand for?",
)  # fmt: skip
_REASONS = (
    "Why {inv}?", "What is the reason that {dec}?", "How come {dec}?", "For what reason {inv}?",
    "Explain why {dec}", "What causes it that {dec}?", "Can you tell me why {dec}?", "reason why {dec}",
    "What is behind the fact that {dec}?", "What explains that {dec}?", "Why is it that {dec}?",
    "What makes it so that {dec}?", "I want to understand why {dec}", "What brings it about that {dec}?",
    "On what grounds {inv}?", "Give the cause: {dec}", "What leads to the fact that {dec}?",
    "To what is it due that {dec}?", "Do you know why {dec}?", "What accounts for the fact that {dec}?",
)  # fmt: skip
_WAYS = (
    "How {inv}?", "In what way {inv}?", "Can you explain how {dec}?", "By what means {inv}?",
    "Describe how {dec}", "What is the way in which {dec}?", "Tell me how it comes that {dec}",
    "How exactly {inv}?", "explanation of how {dec}", "How is it that {dec}?", "In which manner {inv}?",
    "What is known about how {dec}?", "I would like to know how {dec}", "How does it work that {dec}?",
    "Could you describe the way {dec}?", "Through what process {inv}?", "Show how {dec}",
    "What do we know about the way {dec}?", "Do you know how {dec}?", "What mechanism is at work when {dec}?",
)  # fmt: skip
_ABOUT = (
    "What is known about {x}?", "Tell me about {x}", "What should I know about {x}?", "facts about {x}",
    "Give me information on {x}", "What can be said about {x}?", "{x}: the essentials",
    "Explain what matters about {x}", "What are the main points about {x}?", "I am looking for details on {x}",
    "What is there to learn about {x}?", "Summarise {x}", "Which facts describe {x}?", "overview of {x}",
    "Could you inform me about {x}?", "What is important to know about {x}?", "Describe {x}",
    "What is the story of {x}?", "background on {x}", "In short, what about {x}?",
)  # fmt: skip


def paraphrases(document: Document, rng: random.Random) -> list[str]:
    """The document's main question in up to 20 wordings: what the topic is, why or how its first clause holds."""
    material = Material.of(document)
    topic, found = material.topic, material.clauses
    if not topic and not found:
        return []
    main = _main_clause(found, topic)
    if main is None:
        frames, values = _ABOUT, {"x": topic}
    elif _is_definition(main):
        frames, values = _DEFINITION, {"x": main.subject, "be": main.verb}
    else:
        why = _REASON.search(main.sentence) or (main.auxiliary and not _PASSIVE.match(main.rest))
        rest = _before(main, (_REASON if why else _MEANS).search(f" {main.rest} "))
        head = main.inverted[0]
        declared = f"{main.subject} {main.verb} {rest}"
        frames, values = (_REASONS if why else _WAYS), {"inv": f"{head} {rest}", "dec": declared}
    rest_of_frames = rng.sample(frames[1:], len(frames) - 1)
    return [_sentence_case(_insert(frame, values)) for frame in (frames[0], *rest_of_frames)]


def _main_clause(found: list[Clause], topic: str) -> Clause | None:
    """The first clause about the topic, else the first of all."""
    return next((clause for clause in found if _overlap(clause.subject, topic)), found[0] if found else None)


def _insert(frame: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], frame)
