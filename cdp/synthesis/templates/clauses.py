"""Simple clauses of English sentences: subject, finite verb and the rest, from closed lists, without a tagger.

The first finite verb of a sentence is taken from a list; whatever leaves a doubt (a pronoun without what it stands
for, a noun that may be a verb, an end that cuts a thought) gives no clause rather than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from cdp.base.records import Document
from cdp.synthesis.templates.english import (
    ADVERBS,
    AUXILIARIES,
    BASE_FORM,
    CONJUNCTIONS,
    CONNECTIVES,
    DETERMINERS,
    FUNCTION_WORDS,
    NOT_LAST,
    PARTICIPLES,
    PLAIN_FORMS,
    POINTING,
    PREPOSITIONS,
    SECTION_LABELS,
)
from cdp.synthesis.templates.phrases import key_phrases, plain, sentences, words

_YEAR_OPENING = re.compile(r"^(?:In|By|Since|During|Around|Until|From) (?:the )?\d{3,4}s?,?\s(?=[A-Za-z])")
_TRAILING = re.compile(
    r",\s|[;:]|\s[—–-]\s|(?<=.{12})\sthat\s"
    r"|\s(?:which|who|whose|but|while|whereas|although|though|so that|and then|and so|even though)\s"
)
_SECOND_VERBS = frozenset(BASE_FORM) - PLAIN_FORMS
_FINITE = frozenset({"is", "are", "was", "were", "has", "can", "could", "will", "would", "may", "might", "must"})
ARTICLES = frozenset({"a", "an", "the"})
# Past forms that are base forms too: which of the two they are, cannot be told.
_INVARIANT = frozenset({"set", "cost", "let", "spread", "broadcast", "bound", "lay"})
_NAME_END = re.compile(r"^(?:Jr|Sr|Inc|Ltd|Co|Corp|II|III|IV)\b")
LONGEST_SUBJECT = 8
LONGEST_REST = 20

_SINGULAR = frozenset(
    {"lens", "series", "species", "news", "gas", "canvas", "atlas", "mars", "athens", "paris", "texas"}
)
_PLURAL = frozenset(
    {"people", "children", "men", "women", "teeth", "feet", "mice", "geese", "bacteria", "data", "fungi", "police"}
)


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
    def helper(self) -> str:
        """The word in front of the subject of its question."""
        if self.auxiliary:
            return self.verb
        plain_form = self.verb in PLAIN_FORMS and BASE_FORM[self.verb] == self.verb
        return "do" if plain_form else "does" if self.verb.endswith("s") else "did"

    @property
    def inverted(self) -> tuple[str, str]:
        """The question's order in two parts: ("does the liver make", "bile"), ("is the sky", "blue")."""
        base = "" if self.auxiliary else BASE_FORM[self.verb]
        return " ".join(part for part in (self.helper, self.subject, self.adverb, base) if part), self.rest

    @property
    def declarative(self) -> str:
        return " ".join(part for part in (self.subject, self.adverb, self.verb, self.rest) if part)


@lru_cache(maxsize=1 << 12)
def standing_alone(sentence: str) -> str:
    """A sentence without headings, connectives, asides, quotation marks and its full stop; "" where it points back."""
    tokens = plain(sentence).rstrip(" .!?…").split()
    while tokens and (bare := tokens[0].rstrip(":,.").lower()):
        heading = bare in SECTION_LABELS and (tokens[0].isupper() or tokens[0].endswith(":")) and len(tokens) > 1
        connective = bare in CONNECTIVES and (tokens[0].endswith(",") or bare in ("and", "but", "or", "so"))
        if not heading and not connective and bare not in ("&", "-", "–", "—", "•", "*"):
            break
        tokens = tokens[1:]
    if not tokens or tokens[0].lower().strip(",") in CONNECTIVES - {"as", "here", "although", "though", "today"}:
        return ""
    first = tokens[0].strip(",")
    return " ".join([first[:1].upper() + tokens[0][1:], *tokens[1:]]) if first else ""


def clauses(sentences: Sequence[str], topic: str) -> list[Clause]:
    """The clauses of English sentences, at most one of each. A pronoun for a topic just named becomes ``topic``."""
    inner_words = {word for sentence in sentences for word in words(sentence)[1:]}
    text = " ".join(sentences[:2]).lower()
    spoken_of = topic.lower() in text  # a title that the text never says is no name for what "it" is
    candidates = (
        _clause(sentence, index, topic if spoken_of and index <= 2 else "", inner_words, topic)
        for index, sentence in enumerate(sentences)
    )
    return [clause for clause in candidates if clause is not None]


def _clause(sentence: str, index: int, meant: str, inner_words: set[str], topic: str) -> Clause | None:
    body = _YEAR_OPENING.sub("", standing_alone(sentence))
    opening, comma, after = body.partition(", ")
    first = opening.split(None, 1)[0].lower() if opening.strip() else ""
    if comma and first in PREPOSITIONS | CONJUNCTIONS | {"today", "here"}:
        body = after
    tokens = body.split()
    start = (
        len(topic.split()) if topic and body.lower().startswith(f"{topic.lower()} ") else 1
    )  # "The Wall Can Talk is"
    end = min(len(tokens) - 1, start + LONGEST_SUBJECT + 1)
    lowered = [token.lower() for token in tokens[: end + 1]]
    for position in range(start, end):
        token, before, after = lowered[position], lowered[position - 1], lowered[position + 1]
        if (before.endswith((",", ";", ":", "—", "–")) or token in CONJUNCTIONS) and position > start:
            return None
        helps = token in AUXILIARIES or _is_perfect(token, after)
        if not helps and not _is_lexical(token, before, after, tokens[:position]):
            continue
        adverb = before if position > 1 and (before in ADVERBS or before.endswith("ly")) else ""
        before_verb = tokens[: position - 1] if adverb else tokens[:position]
        is_title = start > 1 and len(before_verb) == start
        subject = " ".join(before_verb) if is_title else _subject(before_verb, meant, inner_words, topic)
        if subject is None or (not helps and _is_reduced(token, tokens[position + 1 :])):
            return None
        rest = shorten(" ".join(_until_next_verb(tokens[position + 1 :])), LONGEST_REST)
        if not rest or not _agree(subject, token):
            return None
        return Clause(subject, token, rest, index, helps, sentence, adverb)
    return None


def _is_lexical(token: str, before: str, after: str, subject: Sequence[str]) -> bool:
    """Whether ``token`` is a finite verb and not a noun that looks like one."""
    if token not in BASE_FORM or token in _INVARIANT or before in DETERMINERS | PREPOSITIONS | AUXILIARIES:
        return False
    if after in AUXILIARIES or (after in BASE_FORM and after not in ("cost", "work", "use", "need", "help")):
        return False
    joined = "and" in (word.lower() for word in subject)
    plural = joined or (before.endswith("s") and not before.endswith(("'s", "’s", "ss"))) or before in _PLURAL
    return plural or token not in PLAIN_FORMS


def _is_reduced(token: str, rest: Sequence[str]) -> bool:
    """Whether another finite verb follows, so that ``token`` was a participle: "the wall built in 1400 is long"."""
    if token.endswith("s") or token in PLAIN_FORMS:
        return False
    for at, word in enumerate(rest[:14]):
        lower = word.lower()
        if lower in CONJUNCTIONS | {"and", "or", "but"} or word.endswith((",", ";", ":")):
            return False
        if lower in _FINITE and at > 0:
            return True
    return False


def _agree(subject: str, verb: str) -> bool:
    """Whether number agrees where it can be told; where it does not, the words were misread."""
    head = re.split(r"\s(?:of|in|on|at|for|from|with|to|between|by)\s", subject)[0]
    if verb in ("is", "was", "has") or (verb in BASE_FORM and verb.endswith("s") and verb not in PLAIN_FORMS):
        return not is_plural(head) or head[:1].isupper()
    return True


def _until_next_verb(tokens: list[str]) -> list[str]:
    """The rest of a clause without a second predicate: "turns the cap [and spreads the cloth]"."""
    for at in range(1, len(tokens) - 1):
        word = tokens[at + 1].lower()
        participle = tokens[at - 1].endswith(("ed", "en")) or tokens[at - 1] in PARTICIPLES  # "written and directed by"
        if (
            tokens[at] == "and"
            and not participle
            and (word in AUXILIARIES or word in _SECOND_VERBS or word.endswith(("ed", "ly")))
        ):
            return tokens[:at]
    return tokens


def _is_perfect(token: str, following: str) -> bool:
    """Whether has, have or had helps a participle, as in "had built"."""
    return token in ("has", "have", "had") and (
        following in BASE_FORM or following in PARTICIPLES or following.endswith(("ed", "en", "been"))
    )


def _subject(tokens: list[str], meant: str, inner_words: set[str], topic: str) -> str | None:
    first = tokens[0].lower() if tokens else ""
    if first in ("its", "his", "her"):
        return f"{meant}'s {' '.join(tokens[1:])}" if meant and 1 < len(tokens) <= 4 else None
    if len(tokens) == 1 and first in ("it", "he", "she"):
        return meant or None
    if not tokens or first in POINTING | PREPOSITIONS | CONJUNCTIONS | {
        "there",
        "and",
        "but",
        "or",
        "to",
        "not",
        "let",
    }:
        return None
    lowered = [token.lower() for token in tokens]
    if len(tokens) > LONGEST_SUBJECT or first.endswith("ing") or not any(c.isalpha() for c in tokens[0]):
        return None
    if any(
        token in POINTING - {"other", "one", "same", "most", "all"} or token in ("to", "as") for token in lowered[1:]
    ):
        return None
    if any(token.endswith(",") or (token.endswith("ly") and len(token) > 5) for token in tokens) or first in BASE_FORM:
        return None
    if any(token in BASE_FORM and token not in PLAIN_FORMS and not token.endswith("s") for token in lowered[1:]):
        return None
    if lowered[-1] in NOT_LAST or (len(tokens) == 1 and first in FUNCTION_WORDS):
        return None
    if tokens[0].istitle() and not _is_name(tokens, inner_words, topic):
        tokens = [tokens[0].lower(), *tokens[1:]]
    return " ".join(tokens)


def _is_name(tokens: Sequence[str], inner_words: set[str], topic: str) -> bool:
    """Whether the first word of a sentence keeps its capital: it has one elsewhere, or begins a name."""
    first = tokens[0]
    if first.lower() in DETERMINERS or first.lower() in inner_words:
        return False
    if first in inner_words or first in topic.split() or first.endswith(("'s", "’s")):
        return True
    return any(t[:1].isupper() and not t.isupper() for t in tokens[1:]) if len(tokens) > 1 else not first.endswith("s")


def shorten(text: str, longest: int = 14) -> str:
    """The start of a clause up to a natural break, at most ``longest`` words; "" where no thought ends before that."""
    start = 0
    whole = text
    while match := _TRAILING.search(text, start):
        following = text[match.end() :].split(None, 1)[:1]
        before = text[: match.start()].split()
        adjectives = (
            match[0] == ", " and len(before) > 1 and before[-2].lower() in ARTICLES and following[:1] != []
            and following[0].islower() and following[0] not in FUNCTION_WORDS
        )  # fmt: skip
        name = match[0] == ", " and following and _NAME_END.match(following[0])
        if not adjectives and not name:
            whole = text[: match.start()]
            break
        start = match.end()
    parts = whole.split()
    if len(parts) > longest:
        ends = (at for at in range(longest, 2, -1) if _begins(parts[at]) and _can_end(parts[at - 1]))
        parts = parts[: next(ends, 0)]
    if not parts or parts[-1].lower().strip(".,") in NOT_LAST:
        return ""
    return " ".join(parts).strip(" .,;:—–")


def _begins(word: str) -> bool:
    """Whether a new phrase begins here, so that a cut before it leaves whole ones."""
    return word.lower() in (PREPOSITIONS - {"of"}) | CONJUNCTIONS


def _can_end(word: str) -> bool:
    lower = word.lower().strip(".,")
    return lower not in FUNCTION_WORDS and lower not in BASE_FORM and not lower.endswith(("ed", "ing", "ly"))


def is_plural(phrase: str) -> bool:
    """Whether an English noun phrase takes are and do, by its last word's ending."""
    last = phrase.split()[-1].lower() if phrase.split() else ""
    ending = last.endswith("s") and not last.endswith(("ss", "us", "is", "ics", "'s")) and last not in _SINGULAR
    return ending or last in _PLURAL or " and " in phrase


# Of a document that are read: about twice what an LLM's prompt holds, and enough for any number of queries.
MOST_CHARACTERS = 20_000

# Words: a longer title is a sentence.
LONGEST_TOPIC = 6


_QUESTIONS = frozenset({"how", "why", "what", "when", "where", "who", "which", "is", "are", "does", "do", "can"})


@dataclass(frozen=True)
class Material:
    """``topic`` is what the document is about, "" where nothing tells. ``title`` is plain; it may be a sentence."""

    topic: str
    title: str
    clauses: list[Clause]
    phrases: list[str]
    sentences: list[str]
    known: dict[str, tuple[str, int]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, document: Document) -> Material:
        split = sentences(document.text[:MOST_CHARACTERS])
        if len(document.text) > MOST_CHARACTERS and len(split) > 1:
            split.pop()  # cut somewhere
        title = plain(document.title[:MOST_CHARACTERS].replace("_", " ")).strip(" .?!,;:")
        phrases = key_phrases([title, *split])
        topic = _topic(title, document.text[:MOST_CHARACTERS], phrases)
        return cls(topic, title, clauses(split, topic), phrases, split)

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
            at = next((i for i, sentence in enumerate(self._lowered) if lowered in sentence), None)
            self.known[phrase] = (phrase, 0) if at is None or not phrase else (_named(phrase, self.sentences[at]), at)
        return self.known[phrase]

    @cached_property
    def title_words(self) -> frozenset[str]:
        """The words of the title that say something, in small letters."""
        return content(self.title) - FUNCTION_WORDS

    @cached_property
    def _lowered(self) -> list[str]:
        return [sentence.lower() for sentence in self.sentences]


def _named(phrase: str, sentence: str) -> str:
    """``phrase`` with the article that it has in ``sentence``, and as it would stand after another word."""
    first, *rest = phrase.split()
    if first.istitle() and rest and all(word.islower() for word in rest):
        phrase = f"{first.lower()} {' '.join(rest)}"
    before = ["", "", *sentence[: sentence.lower().find(phrase.lower())].lower().split()][-2:]
    article = before[1] if before[1] in ARTICLES else before[0] if before[0] == "the" and before[1].isalpha() else ""
    return f"{article} {phrase}".lstrip()


def _topic(title: str, text: str, phrases: list[str]) -> str:
    """The title where that is a name and not a sentence, else the best key phrase."""
    first = title.split(None, 1)[0].lower() if title else ""
    if title and len(title.split()) <= LONGEST_TOPIC and first not in _QUESTIONS:
        lower = title[0].lower() + title[1:]
        return lower if lower in text else title
    return phrases[0] if phrases else title


@lru_cache(maxsize=1 << 14)
def content(phrase: str) -> frozenset[str]:
    """The words of a phrase, in small letters. Asked for again and again while one document is read."""
    return frozenset([word.lower() for word in words(phrase)])
