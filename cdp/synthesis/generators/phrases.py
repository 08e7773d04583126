"""Sentences, key phrases and simple clauses of a document: what the template generator builds queries from.

No tagger and no model. Key phrases are runs of words without function words, scored by how often their words occur
and how long the runs are that they occur in (RAKE; Rose et al., 2010). A clause is found by the first finite verb of
a sentence, taken from a closed list; sentences without one simply give no clause.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from cdp.synthesis.generators.english import (
    ADVERBS,
    AUXILIARIES,
    BASE_FORM,
    CONJUNCTIONS,
    DETERMINERS,
    FUNCTION_WORDS,
    PLAIN_FORMS,
    PREPOSITIONS,
    PRONOUNS,
)

_BOUNDARY = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W_a-z])|(?<=[。！？؟۔।])[」』”）]*\s*|\n+")
_ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|approx|Jr|No|e\.g|i\.e|c|ca))\.$")
_INITIAL = re.compile(r"\b[A-Z]\.$")
_LONGEST_ABBREVIATION = 12
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]")
_ASIDE = re.compile(r"\s?\([^()]*\)")
_YEAR_OPENING = re.compile(r"^(?:In|By|Since|During|Around|Until|From) (?:the )?\d{3,4}s?,?\s(?=[A-Za-z])")
_SECOND_VERBS = frozenset(BASE_FORM) - PLAIN_FORMS
_PERSONAL = frozenset({"it", "they", "he", "she", "we", "you", "i"})
_WORD = re.compile(r"[^\W_]+(?:['’\-–.,][^\W_]+)*")
_TRAILING = re.compile(
    r",\s|[;:(]|\s[—–-]\s|(?<=.{12})\sthat\s"
    r"|\s(?:which|who|whose|but|while|whereas|although|though|so that|and then|and so|even though)\s"
)

_SINGULAR = frozenset(
    {"lens", "series", "species", "news", "gas", "canvas", "atlas", "mars", "athens", "paris", "texas"}
)
_PLURAL = frozenset(
    {"people", "children", "men", "women", "teeth", "feet", "mice", "geese", "bacteria", "data", "fungi"}
)

SHORTEST_SENTENCE = 12
SHORTEST_WIDE = 5
"""Characters, of an alphabet and of Chinese, Japanese and Korean; shorter ones are headings or debris."""


def is_english(text: str) -> bool:
    """Whether enough of the words are English function words to build English sentences around them."""
    words = [word.lower() for word in re.findall(r"[^\W\d_]+", text[:4000])]
    if not words:
        return False
    return sum(word in FUNCTION_WORDS for word in words) / len(words) > 0.18


def sentences(text: str) -> list[str]:
    """The sentences of a text in its order, without those too short to hold a fact. Takes time linear in the text."""
    found: list[str] = []
    pieces: list[str] = []
    for piece in _BOUNDARY.split(text):
        piece = " ".join(piece.split())
        if not piece:
            continue
        if pieces and not _goes_on(pieces[-1], piece):
            found.append(" ".join(pieces))
            pieces = []
        pieces.append(piece)
    found.append(" ".join(pieces))
    return [
        sentence
        for sentence in found
        if len(sentence) >= (SHORTEST_WIDE if _WIDE.search(sentence) else SHORTEST_SENTENCE)
    ]


def _goes_on(piece: str, following: str) -> bool:
    """Whether the full stop that ends ``piece`` belongs to an abbreviation, so that the sentence goes on."""
    end = piece[-_LONGEST_ABBREVIATION:]
    initial = _INITIAL.search(end)
    return bool(_ABBREVIATION.search(end)) and not (initial and following.split(None, 1)[0].lower() in FUNCTION_WORDS)


def words(text: str) -> list[str]:
    """The words of a text, hyphens and inner marks kept."""
    return _WORD.findall(text)


def key_phrases(text: str, *, longest: int = 3) -> list[str]:
    """Distinct key phrases of an English text, best first, each of at most ``longest`` words, in its first spelling."""
    runs: list[list[str]] = []
    for sentence in sentences(text):
        for part in re.split(r"[^\w\s'’\-–.]|(?<!\d)\.|\.(?!\d)", sentence):
            run: list[str] = []
            for word in [*part.split(), ""]:
                bare = word.strip("'’-–.")
                content = len(bare) > 1 and bare.lower() not in FUNCTION_WORDS and bare.lower() not in BASE_FORM
                if content and not run and bare.lower().endswith(("ing", "ed")):
                    continue
                if bare.lower() in ADVERBS or (run and bare.lower().endswith("ed")):
                    content = False
                if content and not bare.isdigit() and not bare.lower().endswith("ly"):
                    run.append(bare)
                elif run:
                    runs.append(run)
                    run = []
    frequency: Counter[str] = Counter()
    degree: dict[str, int] = defaultdict(int)
    for run in runs:
        for word in run:
            frequency[word.lower()] += 1
            degree[word.lower()] += min(len(run), longest)
    scored: dict[str, tuple[float, str]] = {}
    for run in runs:
        phrase = " ".join(run[-longest:])
        score = sum(degree[word.lower()] * (1 + 0.3 * frequency[word.lower()]) for word in run[-longest:])
        if any(character.isalpha() for character in phrase):
            scored.setdefault(phrase.lower(), (score * (0.6 if len(run) == 1 else 1.0), phrase))
    return [phrase for _, phrase in sorted(scored.values(), key=lambda item: -item[0])]


@dataclass(frozen=True)
class Clause:
    """Subject, finite verb and the rest of one English sentence. ``auxiliary`` tells how its question is built."""

    subject: str
    verb: str
    rest: str
    index: int
    auxiliary: bool
    sentence: str
    adverb: str = ""

    @property
    def inverted(self) -> tuple[str, str]:
        """The question's order in two parts: ("does the liver make", "bile"), ("is the sky", "blue")."""
        if self.auxiliary:
            return f"{self.verb} {self.subject}", self.rest
        base = BASE_FORM[self.verb]
        helper = (
            "do" if self.verb in PLAIN_FORMS else "does" if self.verb.endswith("s") and self.verb != base else "did"
        )
        return " ".join(part for part in (helper, self.subject, self.adverb, base) if part), self.rest

    @property
    def declarative(self) -> str:
        return " ".join(part for part in (self.subject, self.adverb, self.verb, self.rest) if part)


def clauses(text: str, topic: str) -> list[Clause]:
    """The clauses of an English text, one for each sentence that shows one. A leading pronoun becomes ``topic``."""
    proper = {word for sentence in sentences(text) for word in words(sentence)[1:] if word[:1].isupper()}
    found: list[Clause] = []
    for index, sentence in enumerate(sentences(text)):
        clause = _clause(sentence, index, topic, proper)
        if clause is not None:
            found.append(clause)
    return found


def _clause(sentence: str, index: int, topic: str, proper: set[str]) -> Clause | None:
    body = _ASIDE.sub("", sentence).strip(" \"'“”‘’").rstrip(".!?…")
    body = _YEAR_OPENING.sub("", body)
    opening, comma, after = body.partition(", ")
    if comma and opening.strip() and opening.split()[0].lower() in PREPOSITIONS | CONJUNCTIONS | {"today", "however"}:
        body = after
    tokens = body.split()
    for position in range(1, min(len(tokens) - 1, 9)):
        token, before = tokens[position].lower(), tokens[position - 1].lower()
        if before.endswith((",", ";", ":", "—")) or token in CONJUNCTIONS:
            return None
        joined = "and" in (word.lower() for word in tokens[:position])
        plural = joined or (before.endswith("s") and not before.endswith(("'s", "’s")))
        lexical = token in BASE_FORM and before not in DETERMINERS | PREPOSITIONS and before not in AUXILIARIES
        if token in PLAIN_FORMS and not plural:
            lexical = False
        helps = token in AUXILIARIES or _is_perfect(token, tokens[position + 1].lower())
        if helps or lexical:
            adverb = before if (position > 1 and before in ADVERBS) or before.endswith("ly") else ""
            subject = _subject(tokens[: position - 1] if adverb else tokens[:position], topic, proper)
            rest = shorten(" ".join(_until_next_verb(tokens[position + 1 :])))
            if subject is None or not rest:
                return None
            return Clause(subject, token, rest, index, helps, sentence, adverb)
    return None


def _until_next_verb(tokens: list[str]) -> list[str]:
    """The rest of a clause without a second predicate: "turns the cap [and spreads the cloth]"."""
    for at in range(1, len(tokens) - 1):
        word = tokens[at + 1].lower()
        if tokens[at] == "and" and (word in AUXILIARIES or word in _SECOND_VERBS or word.endswith("ed")):
            return tokens[:at]
    return tokens


def _is_perfect(token: str, following: str) -> bool:
    """Whether has, have or had helps a participle, as in "had built"."""
    return token in ("has", "have", "had") and (following in BASE_FORM or following.endswith(("ed", "en", "been")))


def _subject(tokens: list[str], topic: str, proper: set[str]) -> str | None:
    first = tokens[0].lower() if tokens else ""
    if first in ("its", "their", "his", "her"):
        return f"{topic}'s {' '.join(tokens[1:])}" if topic and 1 < len(tokens) <= 4 else None
    if not tokens or first in PRONOUNS:
        return topic if len(tokens) == 1 and topic else None
    if first in PREPOSITIONS or first in CONJUNCTIONS | {"there", "and", "but", "or"}:
        return None
    if len(tokens) > 7 or (first.endswith("ing") and len(tokens) > 4):
        return None
    if any(token.lower() in _PERSONAL for token in tokens):
        return None
    named = tokens[0].endswith(("'s", "’s")) or tokens[0] in proper or any(token[:1].isupper() for token in tokens[1:])
    plain = first in DETERMINERS or not (named or tokens[0].isupper())
    if plain and tokens[0][:1].isalpha():
        tokens = [tokens[0][0].lower() + tokens[0][1:], *tokens[1:]]
    return " ".join(tokens)


def shorten(text: str, longest: int = 14) -> str:
    """The start of a clause, up to a natural break and at most ``longest`` words, never ending in a function word."""
    match = _TRAILING.search(text)
    parts = (text[: match.start()] if match else text).split()
    kept = parts[:longest]
    while kept and kept[-1].lower().strip(".,") in FUNCTION_WORDS - AUXILIARIES and len(parts) > longest:
        kept.pop()
    return " ".join(kept).strip(" .,;:—–")


def is_plural(phrase: str) -> bool:
    """Whether an English noun phrase takes are and do, by its last word's ending."""
    last = phrase.split()[-1].lower() if phrase.split() else ""
    ending = last.endswith("s") and not last.endswith(("ss", "us", "is", "ics")) and last not in _SINGULAR
    return ending or last in _PLURAL or " and " in phrase
