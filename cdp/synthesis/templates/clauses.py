"""Simple clauses of English sentences: subject, finite verb and the rest, from closed lists, without a tagger.

The first finite verb of a sentence is taken from a list. A sentence in doubt (a pronoun without its noun, a noun that
may be a verb, a cut-off end) gives no clause rather than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cdp.synthesis.templates.lexicon import (
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
    WEAK_VERBS,
)
from cdp.synthesis.templates.phrases import plain, words

_YEAR_OPENING = re.compile(r"^(?:In|By|Since|During|Around|Until|From) (?:the )?\d{3,4}s?,?\s(?=[A-Za-z])")
_TRAILING = re.compile(
    r",\s|[;:]|\s[—–-]\s|(?<=.{12})\sthat\s"
    r"|\s(?:which|who|whose|but|while|whereas|although|though|so that|and then|and so|even though)\s"
)
_SECOND_VERBS = frozenset(BASE_FORM) - PLAIN_FORMS
_FINITE = frozenset({"is", "are", "was", "were", "has", "can", "could", "will", "would", "may", "might", "must"})
_ARTICLES = frozenset({"a", "an", "the"})
# Past forms that are base forms too, so tense is ambiguous.
_INVARIANT = frozenset({"set", "cost", "let", "spread", "broadcast", "bound", "lay"})
_NO_SUBJECT = POINTING | PREPOSITIONS | CONJUNCTIONS | {"there", "and", "but", "or", "to", "not", "let"}
_NOT_IN_SUBJECT = POINTING - {"other", "one", "same", "most", "all"} | {"to", "as"}
_NAME_END = re.compile(r"^(?:Jr|Sr|Inc|Ltd|Co|Corp|II|III|IV)\b")
_HEAD_END = re.compile(r"\s(?:of|in|on|at|for|from|with|to|between|by)\s")
LONGEST_SUBJECT, LONGEST_REST = 8, 20

_SINGULAR = frozenset({"lens", "series", "species", "news", "gas", "canvas", "atlas", "mars", "paris", "texas"})
_PLURAL = frozenset({"people", "children", "men", "women", "teeth", "feet", "mice", "bacteria", "data", "police"})


@dataclass(frozen=True)
class Clause:
    """Subject, finite verb and the rest of one English sentence, the ``index``-th of its document."""

    subject: str
    verb: str
    rest: str
    index: int
    sentence: str
    adverb: str = ""

    @property
    def is_auxiliary(self) -> bool:
        return self.verb not in BASE_FORM or (self.verb in ("has", "have", "had") and is_perfect(self.verb, self.rest))

    @property
    def inverted(self) -> str:
        """Return the clause in a question's order, without its rest: "does the liver make", "is the sky"."""
        if self.is_auxiliary:
            return _join(self.verb, self.subject, self.adverb)
        base = BASE_FORM[self.verb]
        helper = "do" if self.verb == base else "does" if self.verb.endswith("s") else "did"
        return _join(helper, self.subject, self.adverb, base)

    @property
    def declarative(self) -> str:
        return self.declare(self.rest)

    def declare(self, rest: str) -> str:
        """Return the clause in a statement's order with another rest."""
        return _join(self.subject, self.adverb, self.verb, rest)

    def before(self, answer: re.Pattern[str]) -> str | None:
        """Return the rest up to the words that match ``answer``; None if none do or too little is left to ask about."""
        match = answer.search(f" {self.rest} ")
        if match is None:
            return None
        parts = self.rest[: max(0, match.start() - 1)].strip(" ,").split()
        while parts and parts[-1].lower() in PREPOSITIONS | {"and", "or", "only", "just"}:
            parts.pop()
        weak = self.is_auxiliary or BASE_FORM[self.verb] in WEAK_VERBS - {"begin", "live"}
        return None if weak and not parts else " ".join(parts)


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


@lru_cache(maxsize=1 << 12)
def standing_alone(sentence: str) -> str:
    """Return a sentence without headings, connectives, asides and its full stop; "" if it refers to the one before."""
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
    """Return the clauses of English sentences, at most one of each. A pronoun for the topic just named becomes it."""
    inner_words = {word for sentence in sentences for word in words(sentence)[1:]}
    # A title that the text never says is no name for "it".
    is_named = topic.lower() in " ".join(sentences[:2]).lower()
    found = (
        _clause(sentence, index, topic if is_named and index <= 2 else "", inner_words, topic)
        for index, sentence in enumerate(sentences)
    )
    return [clause for clause in found if clause is not None]


def _clause(sentence: str, index: int, pronoun_for: str, inner_words: set[str], topic: str) -> Clause | None:
    body = _YEAR_OPENING.sub("", standing_alone(sentence))
    opening, comma, after = body.partition(", ")
    if comma and opening.partition(" ")[0].lower() in PREPOSITIONS | CONJUNCTIONS | {"today", "here"}:
        body = after
    tokens = body.split()
    # A title may hold a verb: "The Wall Can Talk is".
    start = len(topic.split()) if topic and body.lower().startswith(f"{topic.lower()} ") else 1
    end = min(len(tokens) - 1, start + LONGEST_SUBJECT + 1)
    lowered = [token.lower() for token in tokens[: end + 1]]
    for position in range(start, end):
        token, before, following = lowered[position], lowered[position - 1], lowered[position + 1]
        if (before.endswith((",", ";", ":", "—", "–")) or token in CONJUNCTIONS) and position > start:
            return None
        helps = token in AUXILIARIES or is_perfect(token, following)
        if not helps and not _is_finite(token, before, following, tokens[:position]):
            continue
        adverb = before if position > 1 and (before in ADVERBS or before.endswith("ly")) else ""
        before_verb = tokens[: position - 1] if adverb else tokens[:position]
        is_title = start > 1 and len(before_verb) == start
        subject = " ".join(before_verb) if is_title else _subject(before_verb, pronoun_for, inner_words, topic)
        remainder = tokens[position + 1 :]
        if subject is None or (not helps and _is_participle(token, remainder)) or not _agree(subject, token):
            return None
        if token in ("has", "have", "had") and not helps and (following in ADVERBS or following.endswith("ly")):
            return None
        rest = shorten(" ".join(_first_predicate(remainder)), LONGEST_REST)
        return Clause(subject, token, rest, index, sentence, adverb) if rest else None
    return None


def _is_finite(token: str, before: str, after: str, subject: Sequence[str]) -> bool:
    """Return True if ``token`` is a finite verb and not a noun of the same form."""
    if token not in BASE_FORM or token in _INVARIANT or before in DETERMINERS | PREPOSITIONS | AUXILIARIES:
        return False
    if after in AUXILIARIES or (after in BASE_FORM and after not in ("cost", "work", "use", "need", "help")):
        return False
    plural = before in _PLURAL or (before.endswith("s") and not before.endswith(("'s", "’s", "ss")))
    return plural or token not in PLAIN_FORMS or "and" in [word.lower() for word in subject]


def _is_participle(token: str, rest: Sequence[str]) -> bool:
    """Return True if another finite verb follows: in "the wall built in 1400 is long", "built" is a participle."""
    if token.endswith("s") or token in PLAIN_FORMS:
        return False
    for at, word in enumerate(rest[:14]):
        if word.lower() in CONJUNCTIONS | {"and", "or", "but"} or word.endswith((",", ";", ":")):
            return False
        if word.lower() in _FINITE and at > 0:
            return True
    return False


def _agree(subject: str, verb: str) -> bool:
    """Return False if subject and verb differ in number: the words were misread."""
    head = _HEAD_END.split(subject)[0]
    if verb in ("is", "was", "has") or (verb in BASE_FORM and verb.endswith("s") and verb not in PLAIN_FORMS):
        return not is_plural(head) or head[:1].isupper()
    return True


def _first_predicate(tokens: list[str]) -> list[str]:
    """Return the tokens up to a second predicate: "turns the cap [and spreads the cloth]"."""
    for at in range(1, len(tokens) - 1):
        word = tokens[at + 1].lower()
        participle = tokens[at - 1].endswith(("ed", "en")) or tokens[at - 1] in PARTICIPLES  # "written and directed by"
        verb = word in AUXILIARIES or word in _SECOND_VERBS or word.endswith(("ed", "ly"))
        if tokens[at] == "and" and not participle and verb:
            return tokens[:at]
    return tokens


def is_perfect(token: str, rest: str) -> bool:
    """Return True if has, have or had helps a participle, as in "had built"."""
    following = rest.partition(" ")[0].lower()
    return token in ("has", "have", "had") and (
        following in BASE_FORM or following in PARTICIPLES or following.endswith(("ed", "en", "been"))
    )


def _subject(tokens: list[str], pronoun_for: str, inner_words: set[str], topic: str) -> str | None:
    """Return a subject as it reads within a sentence; None if it is no plain noun phrase."""
    lowered = [token.lower() for token in tokens]
    first = lowered[0] if lowered else ""
    if first in ("its", "his", "her"):
        return f"{pronoun_for}'s {' '.join(tokens[1:])}" if pronoun_for and 1 < len(tokens) <= 4 else None
    if len(tokens) == 1 and first in ("it", "he", "she"):
        return pronoun_for or None
    if (
        not first[:1].isalpha()
        or len(tokens) > LONGEST_SUBJECT
        or first in _NO_SUBJECT
        or first in BASE_FORM
        or first.endswith("ing")
        or lowered[-1] in NOT_LAST
        or (len(tokens) == 1 and first in FUNCTION_WORDS)
        or any(token.endswith(",") or (token.endswith("ly") and len(token) > 5) for token in lowered)
        or any(token in _NOT_IN_SUBJECT or _is_past(token) for token in lowered[1:])
    ):
        return None
    if tokens[0].istitle() and not _is_name(tokens, inner_words, topic):
        tokens = [first, *tokens[1:]]
    return " ".join(tokens)


def _is_past(token: str) -> bool:
    return token in BASE_FORM and token not in PLAIN_FORMS and not token.endswith("s")


def _is_name(tokens: Sequence[str], inner_words: set[str], topic: str) -> bool:
    """Return True if the first word of a sentence keeps its capital: it has one elsewhere, or begins a name."""
    first = tokens[0]
    if first.lower() in DETERMINERS or first.lower() in inner_words:
        return False
    if first in inner_words or first in topic.split() or first.endswith(("'s", "’s")):
        return True
    return any(t[:1].isupper() and not t.isupper() for t in tokens[1:]) if len(tokens) > 1 else not first.endswith("s")


def shorten(text: str, longest: int) -> str:
    """Return the start of a clause up to a natural break, at most ``longest`` words; "" if it has none before that."""
    start, kept = 0, text
    while match := _TRAILING.search(text, start):
        following = text[match.end() :].split(None, 1)[:1]
        before = text[: match.start()].split()
        adjectives = (  # "a long, narrow valley"
            match[0] == ", " and len(before) > 1 and before[-2].lower() in _ARTICLES
            and following and following[0].islower() and following[0] not in FUNCTION_WORDS
        )  # fmt: skip
        name = match[0] == ", " and following and _NAME_END.match(following[0])
        if not adjectives and not name:
            kept = text[: match.start()]
            break
        start = match.end()
    parts = kept.split()
    if len(parts) > longest:
        ends = (at for at in range(longest, 2, -1) if _begins_phrase(parts[at]) and _ends_phrase(parts[at - 1]))
        parts = parts[: next(ends, 0)]
    if not parts or parts[-1].lower().strip(".,") in NOT_LAST:
        return ""
    return " ".join(parts).strip(" .,;:—–")


def _begins_phrase(word: str) -> bool:
    return word.lower() in (PREPOSITIONS - {"of"}) | CONJUNCTIONS


def _ends_phrase(word: str) -> bool:
    lower = word.lower().strip(".,")
    return lower not in FUNCTION_WORDS and lower not in BASE_FORM and not lower.endswith(("ed", "ing", "ly"))


def is_plural(phrase: str) -> bool:
    """Return True if an English noun phrase takes "are" and "do", by its last word's ending."""
    last = phrase.split()[-1].lower() if phrase.split() else ""
    ending = last.endswith("s") and not last.endswith(("ss", "us", "is", "ics", "'s")) and last not in _SINGULAR
    return ending or last in _PLURAL or " and " in phrase
