"""Diverse queries and paraphrases for an English document, from its clauses and key phrases."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

from cdp.base.records import Document
from cdp.synthesis.templates.clauses import Clause, clauses, is_plural, standing_alone
from cdp.synthesis.templates.lexicon import (
    BASE_FORM,
    FUNCTION_WORDS,
    INDIRECT,
    NOT_LAST,
    PARTICIPLES,
    PLAIN_FORMS,
    POINTING,
    PREPOSITIONS,
    ROLES,
    SPEAKERS,
    STATES,
    VAGUE_HEADS,
)
from cdp.synthesis.templates.phrases import (
    LONGEST,
    content,
    is_presentable,
    key_phrases,
    plain,
    plain_title,
    read_sentences,
    words,
)

_BE = ("is", "are", "was", "were")
_REASON = re.compile(r"\s(?:because|due to|thanks to|in order to|so that|to prevent|to avoid)\s", re.IGNORECASE)
_MEANS = re.compile(r"\s(?:by \w+ing|using|with the help of|by means of)\s", re.IGNORECASE)
_TIME = re.compile(
    r"\s(?:when|if|until|once|whenever|during|(?:after|before)(?= [a-z])"
    r"|(?:in|since|until|on) (?:the )?(?:early |late )?(?:\d{3,4}s?|\d{1,2} [A-Z]\w+|(?:January|February|March|April"
    r"|May|June|July|August|September|October|November|December)\b))(?=\s|$)"
)
_PLACE = re.compile(r"\s(?:in|at|near) (?:the )?(?=[A-Z][a-z])")
_PLACED = frozenset(
    "born located situated held built founded based buried killed filmed formed established".split()  # noqa: SIM905
)
_AGENT = re.compile(r"^(\w+) by ((?:the )?[A-Z][\w.'’-]+(?: (?:[A-Z][\w.'’-]*|of|de|van|von|and))*)(?P<tail>.*)$")
_COUNT = re.compile(
    r"^(?:over |about |around |nearly )?(\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) "
    r"(?P<counted>(?:[a-z-]+ )?[a-z]+s)\b(?P<tail>(?! of\b).*)$"
)
_COMPARED = re.compile(r"\b(?:more|less|fewer|\w+er|better|worse|greater) than (?:in |with |for )?(?P<other>.+)$")
_NOUN_PHRASE = re.compile(r"^(?:an?|the|one of)\s", re.IGNORECASE)
_PASSIVE = re.compile(
    r"^(?:\w+ly\s)?(?:\w+ed|made|(?:re)?built|found|known|held|grown|kept|written|given|taken|set|sold)\b"
)
_LIFE = re.compile(r"\([^)]*(?:\b(?:born|died|née)\b|\d{4}\s?[–-]\s?(?:\d{1,2} )?[A-Z][a-z]+ )")
_HEAD_END = re.compile(
    r",|\s(?:of|in|on|at|for|from|with|to|that|which|who|whose|by|and|as|\w+ed|known|made|built|written)\b"
)
_PRONOUN_SUBJECT = re.compile(r"\b(?:he|she|they)\b|(?:^|[,;] )(?:it|its|their)\b", re.IGNORECASE)
_COMMANDS = PLAIN_FORMS | {"do", "be", "please", "yes", "no", "oh", "well", "ah"}

# Words: a longer title is a sentence, and no name of the topic.
LONGEST_TOPIC = 6
LONGEST_KEYWORDS = 10
LONGEST_STATEMENT, SHORTEST_STATEMENT = 22, 6
_QUESTIONS = frozenset({"how", "why", "what", "when", "where", "who", "which", "is", "are", "does", "do", "can"})

# Of a long document.
MOST_OPTIONS = 120
# In points of score: the penalty for a sentence used before, a format used before, and words all used before.
SAME_SOURCE, SAME_FORMAT, SAME_WORDS = 1.5, 2.0, 9.0
# Points by which formats differ from document to document, so that a corpus gets all of them.
TASTE = 1.5


@dataclass(frozen=True)
class Candidate:
    """One possible query. ``source`` is the index of the sentence that answers it; a higher score reads better."""

    format: str
    text: str
    source: int
    score: float


class Material:
    """The parts of a document that queries are built from. ``topic`` is "" for a document without a subject."""

    def __init__(self, document: Document) -> None:
        self.sentences = read_sentences(document)
        self.title = plain_title(document)
        self.phrases = key_phrases(self.sentences)
        self.topic = self._topic(document.text)
        self.clauses = clauses(self.sentences, self.topic)
        self.topical = content(self.title) | content(self.topic)

    def _topic(self, text: str) -> str:
        """Return the title if it is a name and not a sentence, else the best key phrase."""
        first = self.title.partition(" ")[0].lower()
        if self.title and len(self.title.split()) <= LONGEST_TOPIC and first not in _QUESTIONS:
            lower = self.title[0].lower() + self.title[1:]
            return lower if lower in text else self.title
        return self.phrases[0][0] if self.phrases else self.title

    def specificity(self, text: str) -> float:
        """Return from -3 for a query that fits many documents to 1 for one that names its subject and more."""
        inner = [word for word in text.rstrip("?").split()[1:] if word.lower() not in FUNCTION_WORDS]
        names = sum(word[:1].isupper() or any(map(str.isdigit, word)) for word in inner)
        telling = sum(len(word) >= 9 for word in inner)
        topical = not self.topical.isdisjoint(content(text))
        points = 0.6 * topical + 0.4 * min(names, 2) + 0.25 * min(telling, 2)
        return min(1.0, points) if points and len(content(text)) > 1 else -3.0


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield queries in several formats, each on a sentence and in words little used so far."""
    material = Material(document)
    taste = {name: rng.uniform(0, TASTE) for name in FORMATS}
    built = chain(
        chain.from_iterable(_questions(clause, material) for clause in material.clauses),
        _statements(material),
        _keywords(material),
    )
    scored = [
        (option, option.score + taste[option.format] + material.specificity(option.text))
        for option in built
        if is_presentable(option.text)
    ]
    options = sorted(scored, key=lambda item: -item[1])[:MOST_OPTIONS]
    sources: Counter[int] = Counter()
    formats: Counter[str] = Counter()
    used: set[tuple[str, str]] = set()

    def worth(scored: tuple[Candidate, float]) -> float:
        option, score = scored
        said = _word_pairs(option.text)
        repeated = len(said & used) / max(1, len(said))
        return (
            score - SAME_SOURCE * sources[option.source] - SAME_FORMAT * formats[option.format] - SAME_WORDS * repeated
        )

    while options:
        best = max(options, key=worth)
        options.remove(best)
        option = best[0]
        sources[option.source] += 1
        formats[option.format] += 1
        used |= _word_pairs(option.text)
        yield option.text
    yield from _last_resort(material)


FORMATS = ("what", "how", "why", "when", "keyword", "statement", "verify", "comparison")


def _questions(clause: Clause, material: Material) -> Iterator[Candidate]:
    """Yield the questions that a clause answers."""

    def ask(name: str, text: str, score: float) -> Candidate:
        return Candidate(name, _sentence_case(f"{text}?"), clause.index, score)

    head, rest = clause.inverted, clause.rest
    if _is_definition(clause):
        if clause.subject.islower() and material.topical.isdisjoint(content(clause.subject)):
            return
        if _is_person(clause):
            yield ask("what", f"who {clause.verb} {clause.subject}", 3.2)
        elif kind := _kind(clause):
            yield ask("what", f"what kind of {kind} {clause.verb} {clause.subject}", 3)
        elif clause.subject.islower() and len(clause.subject.split()) <= 4:
            yield ask("what", f"what {head}", 3)
    else:
        if agent := _agent(clause):
            yield ask("what", f"who {agent}", 3.5)
        for name, word, answer in (("why", "why", _REASON), ("how", "how", _MEANS), ("when", "when", _TIME)):
            before = None if name != "why" and _is_state(clause) else clause.before(answer)
            if before is not None and not (name == "when" and clause.adverb):
                yield ask(name, f"{word} {head} {before}", 4)
        if clause.verb in _BE and rest.split()[0] in _PLACED and (before := clause.before(_PLACE)):
            yield ask("when", f"where {head} {before}", 3.3)
        # The reason may stand right behind the part of the sentence that the clause kept.
        _, _, behind = clause.sentence.partition(rest)
        if _REASON.match(behind.replace(",", "", 1)) and not _REASON.search(f" {rest} "):
            yield ask("why", f"why {head} {rest}", 3.5)
    if not clause.is_auxiliary and (count := _COUNT.match(rest)) and count["tail"].split()[:1] != ["and"]:
        yield ask("how", f"how many {count['counted']} {head}{count['tail']}", 3.4)
    if other := _COMPARED.search(rest):
        first = other["other"].split()[0].lower()
        if first not in POINTING | PREPOSITIONS and first[0].isalpha() and not first.endswith(("ly", "ed")):
            verb = "do" if is_plural(clause.subject) else "does"
            yield ask("comparison", f"how {verb} {clause.subject} compare with {other['other']}", 2.9)
    if len(rest.split()) >= 3 and _is_impersonal(clause.declarative):
        if not (clause.verb in _BE and rest.split()[0].lower() in PREPOSITIONS):
            yield ask("verify", f"{head} {rest}", 2.2)
        yield ask("verify", f"is it true that {clause.declarative}", -5.0)
        yield Candidate("statement", _sentence_case(clause.declarative), clause.index, 2.7)


def _statements(material: Material) -> Iterator[Candidate]:
    for index, sentence in enumerate(material.sentences):
        text = standing_alone(sentence)
        if SHORTEST_STATEMENT <= len(text.split()) <= LONGEST_STATEMENT and _is_whole(text):
            yield Candidate("statement", text, index, 3)
            yield Candidate("verify", f"Is it true that {_within_sentence(text)}?", index, -5.0)


def _keywords(material: Material) -> Iterator[Candidate]:
    """Yield the topic beside the two best key phrases of each sentence."""
    of_sentence: dict[int, list[str]] = {}
    for phrase, index in material.phrases:
        if not content(phrase) & content(material.topic):
            of_sentence.setdefault(index, []).append(phrase)
    for rank, (index, phrases) in enumerate(of_sentence.items()):
        ordered = sorted(phrases, key=material.sentences[index].find)
        best = [phrase for phrase in ordered if phrase in phrases[:2]]
        parts = f"{material.topic} {' '.join(best)}".split()
        # One word beside the topic would fit other passages about it.
        weak = 2.0 * (len(best) == 1 and " " not in best[0])
        yield Candidate("keyword", " ".join(parts[:LONGEST_KEYWORDS]), index, 2.2 - rank / 20 - weak)
        for one, two in pairwise(ordered):
            yield Candidate("keyword", f"{one} {two}", index, -0.5 if len(content(f"{one} {two}")) > 2 else -1.5)
        yield from (Candidate("keyword", f"{material.topic} {one}".strip(), index, -3.0) for one in phrases[:4])


def _is_whole(sentence: str) -> bool:
    """Return True if a sentence stands alone: a finite verb, no pronoun as a subject, no speaker."""
    tokens = [token.lower().strip(",;'’") for token in sentence.split()]
    return (
        tokens[0] not in POINTING | _COMMANDS
        and not (tokens[0] in PREPOSITIONS and POINTING.intersection(tokens[1:2]))
        and any(token in BASE_FORM or token in ("is", "are", "was", "were", "can", "may", "will") for token in tokens)
        and not tokens[0].endswith("ing")
        and _is_impersonal(sentence)
        and not sentence.endswith(":")
    )


def _is_impersonal(text: str) -> bool:
    """Return True if no pronoun is the subject of a clause and no speaker or listener is named."""
    return SPEAKERS.isdisjoint(re.findall(r"[a-z]+", text.lower())) and not _PRONOUN_SUBJECT.search(text)


def _is_definition(clause: Clause) -> bool:
    """Return True for "X is a …", "X was the …" and "X is one of …"."""
    return clause.verb in _BE and bool(_NOUN_PHRASE.match(clause.rest))


def _is_person(clause: Clause) -> bool:
    """Return True if the clause introduces a person by name: by profession, or by date of birth."""
    name = clause.subject.split()
    if len(name) < 2 or not (name[0][:1].isupper() and name[-1][:1].isupper()) or clause.verb not in ("is", "was"):
        return False
    return bool(content(_HEAD_END.split(clause.rest)[0]) & ROLES) or bool(_LIFE.search(clause.sentence[:160]))


def _kind(clause: Clause) -> str:
    """Return the noun that "X is a …" ends with: "film" in "a 1916 drama film directed by"; "" if it says little."""
    article, _, described = clause.rest.partition(" ")
    phrase = _HEAD_END.split(described)[0].split()
    head = phrase[-1] if len(phrase) > 1 and article in ("a", "an", "the") and clause.verb in ("is", "was") else ""
    return head if head.islower() and head.isalpha() and head not in VAGUE_HEADS | NOT_LAST else ""


def _agent(clause: Clause) -> str:
    """Return "directed Rain in 1916" for "Rain was directed by Ann Lee in 1916"; "" if no agent is named."""
    match = _AGENT.match(clause.rest) if clause.verb in _BE else None
    if match is None:
        return ""
    past = PARTICIPLES.get(match[1]) or (match[1] if match[1].endswith("ed") else "")
    goes_on = match["tail"].partition(" ")[2].partition(" ")[0].lower() in PREPOSITIONS
    return past and f"{past} {clause.subject}{match['tail'] if goes_on else ''}"


def _is_state(clause: Clause) -> bool:
    """Return True if the clause describes a state and no event, so that neither how nor when is asked."""
    if clause.is_auxiliary:
        return clause.verb in _BE and not _PASSIVE.match(clause.rest)
    return BASE_FORM[clause.verb] in STATES


def paraphrases(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield one question about the document in up to 21 wordings.

    It asks for a fact of this passage, so that passages with one title get different questions.
    """
    material = Material(document)
    direct, indirect = _main_question(material)
    yield direct
    if indirect:
        first, *others = INDIRECT
        for wording in (first, *rng.sample(others, len(others))):
            yield wording.format(w=indirect)
    yield from _last_resort(material)


def _main_question(material: Material) -> tuple[str, str]:
    """Return the document's main question and its clause as an indirect question ("" if there is none)."""
    clause = _main_clause(material)
    if clause is None:
        wholes = (text for text in map(standing_alone, material.sentences) if text and _is_whole(text))
        statement = next((text for text in wholes if 4 <= len(text.split()) <= LONGEST and is_presentable(text)), "")
        if statement:
            return statement, f"whether it is true that {_within_sentence(statement)}"
        named = [phrase for phrase, _ in material.phrases if not content(phrase) & content(material.topic)]
        if len(two := [name for name in (material.topic, *named[:2]) if name][:2]) < 2:
            return "".join(two), ""
        return f"What connects {two[0]} with {two[1]}?", f"what connects {two[0]} with {two[1]}"
    verb, subject = clause.verb, clause.subject
    if _is_definition(clause):
        word = "who" if _is_person(clause) else "what" if subject.islower() else ""
        if word and content(subject) & content(material.topic):
            return _sentence_case(f"{word} {verb} {subject}?"), f"{word} {subject} {verb}"
    for word, answer in (("why", _REASON), ("how", _MEANS)):
        before = None if word == "how" and _is_state(clause) else clause.before(answer)
        if before is not None:
            return _sentence_case(f"{word} {clause.inverted} {before}?"), f"{word} {clause.declare(before)}"
    return _sentence_case(f"{clause.inverted} {clause.rest}?"), f"whether {clause.declarative}"


def _main_clause(material: Material) -> Clause | None:
    """Return the presentable clause that is most about the topic: it names the topic, says much, and comes early."""

    def worth(clause: Clause) -> float:
        topical = bool(content(clause.subject) & content(material.topic))
        shared = content(clause.declarative) & content(material.title)
        short = len(clause.declarative.split()) < SHORTEST_STATEMENT
        specific = material.specificity(clause.declarative)
        return 1.5 * topical + 0.6 * min(len(shared), 4) + specific - 0.15 * min(clause.index, 10) - 6 * short

    usable = [
        clause
        for clause in material.clauses
        if is_presentable(_sentence_case(clause.declarative))
        and _is_impersonal(clause.declarative)
        and material.specificity(clause.declarative) > 0
    ]
    return max(usable, key=worth, default=None)


def _last_resort(material: Material) -> Iterator[str]:
    """Yield the document's own words, for one that gives nothing better."""
    for text in (*map(plain, material.sentences), *(phrase for phrase, _ in material.phrases)):
        yield " ".join(text.split()[:LONGEST])
    if not material.sentences:
        yield " ".join(material.title.split()[:LONGEST])


@lru_cache(maxsize=1 << 10)
def _word_pairs(text: str) -> frozenset[tuple[str, str]]:
    return frozenset(pairwise(words(text.lower())))


def _within_sentence(statement: str) -> str:
    """Return a statement as it reads behind other words: only a function word loses its capital."""
    first, space, rest = statement.partition(" ")
    return f"{first.lower() if first.lower() in FUNCTION_WORDS else first}{space}{rest}"


def _sentence_case(text: str) -> str:
    text = " ".join(text.split()).replace(" ?", "?")
    return text[:1].upper() + text[1:]
