"""Sentences and noun phrases of a document, by rules and the word lists of ``data/words/english.toml``: no model."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from typing import NamedTuple

from cdp.base.records import Document
from cdp.base.workspace import SHIPPED_DATA

DATA = tomllib.loads((SHIPPED_DATA / "words" / "english.toml").read_text(encoding="utf-8"))


def word_list(*names: str) -> frozenset[str]:
    """Return the words of the lists of those names."""
    return frozenset(word for name in names for word in DATA[name].split())


PREPOSITIONS, AUXILIARIES = word_list("prepositions"), word_list("auxiliaries")
FUNCTION_WORDS = word_list("determiners", "prepositions", "auxiliaries", "pronouns", "other_function_words")
_VERBS: list[tuple[str, str, str]] = [entry.partition("-") for entry in DATA["verbs"].split()]


def _third_person(base: str) -> str:
    stem = f"{base[:-1]}i" if base.endswith("y") and base[-2] not in "aeiou" else base
    return stem + ("es" if stem.endswith(("s", "x", "ch", "sh", "o", "i")) else "s")


# Base forms of verbs; the third person and, where it is irregular, the past: what is surely finite.
PLAIN_VERBS = frozenset(base for base, _, _ in _VERBS)
_THIRD = frozenset(map(_third_person, PLAIN_VERBS))
FINITE_VERBS = _THIRD | {past for _, _, past in _VERBS if past}

# Characters of a document that are read: about twice what an LLM's prompt holds.
MOST_CHARACTERS = 20_000
# Characters; shorter sentences are headings or debris.
SHORTEST_SENTENCE, SHORTEST_WIDE = 12, 5

_BOUNDARY = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W_a-z])|(?<=[。！？؟۔।])[」』”）]*\s*|\n+")
# In a text without capitals.
_LOWER_BOUNDARY = re.compile(r"(?<=[a-z\d)%][.!?])\s+|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-ZА-Яء-ي]|Mr|Mrs|Ms|Dr|Prof|St|Hon|Gen|Col|Capt|Lt|Sgt|Rev|Sen|Gov|vs|etc|approx|Jr|No|e\.g|i\.e|c|ca"
    r"|\.[a-z]|inc|corp|co|ltd|no|т|д|[Сс]оавт))\.$"
)
_INITIAL = re.compile(r"\b[A-ZА-Яء-ي]\.$")
_LONGEST_ABBREVIATION = 12
WIDE = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]")
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W_]+(?:['’\-–.,][^\W_]+)*")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,60}>")
_QUOTES = re.compile(r"[\"“”„«»®™]|``|''|(?<!\w)['‘’]|['‘’](?!\w)")
_ASIDE = re.compile(r" ?(?:\([^()]*\)|\[[^\[\]]*\]|（[^（）]*）)")
_GAP = re.compile(r" ([,.;:،])|(?<=[\u3000-\u9fff，。]) (?=[\u3000-\u9fff，。])")  # none within Chinese and Japanese
# Some collections write "1 @.@ 5", "self- taught" and "Lee( born 1901)".
_SPLIT_NUMBER, _SPLIT_WORD = re.compile(r" @([.,-])@ "), re.compile(r"(?<=\w)- (?!and\b|or\b|to\b)(?=[^\W_])")
_CLOSE_BRACKET = re.compile(r"(?<=\w)\( ?")
_BRACKETS = dict(zip(")]}」』）》】〉”»", "([{「『（《【〈“«", strict=True))
_MARKS = re.compile("[" + re.escape("".join([*_BRACKETS, *_BRACKETS.values()])) + '"]')


def is_english(text: str) -> bool:
    """Return True if enough of the words are English function words to build English sentences around them."""
    small = [word for word in _LETTERS.findall(text[:4000]) if not word[0].isupper()]  # names are of any language
    return sum(word in FUNCTION_WORDS for word in small) > 0.2 * len(small)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, without those too short to hold a fact. Linear in the text's length."""
    joined: list[str] = []
    pieces: list[str] = []
    beginning = text[:2000]
    lower = beginning.islower() and sum(character.isascii() for character in beginning) > 0.9 * len(beginning)
    for piece in (_LOWER_BOUNDARY if lower else _BOUNDARY).split(text):
        piece = " ".join(piece.split())
        if not piece:
            continue
        if pieces and not _ends_in_abbreviation(pieces[-1], piece):
            joined.append(" ".join(pieces))
            pieces = []
        pieces.append(piece)
    joined.append(" ".join(pieces))
    return [text for text in joined if len(text) >= (SHORTEST_WIDE if WIDE.search(text) else SHORTEST_SENTENCE)]


def _ends_in_abbreviation(piece: str, following: str) -> bool:
    end = piece[-_LONGEST_ABBREVIATION:]
    initial = _INITIAL.search(end)
    return bool(_ABBREVIATION.search(end)) and not (initial and following.split(None, 1)[0].lower() in FUNCTION_WORDS)


def read_sentences(document: Document) -> list[str]:
    """Return the sentences among the first ``MOST_CHARACTERS`` of a document, without one that is cut there."""
    found = sentences(document.text[:MOST_CHARACTERS])
    return found[:-1] if len(document.text) > MOST_CHARACTERS and len(found) > 1 else found


def plain_title(document: Document) -> str:
    """Return the title without markup, underscores, brackets and final punctuation."""
    return plain(document.title[:MOST_CHARACTERS].replace("_", " ")).strip(" .?!,;:。！？؟۔।、，،；：—–-")


def words(text: str) -> list[str]:
    """Return the words of a text, with inner hyphens and apostrophes."""
    return _WORD.findall(text)


@lru_cache(maxsize=1 << 14)
def content(phrase: str) -> frozenset[str]:
    """Return the content words of an English phrase, in small letters."""
    return frozenset(word.lower() for word in words(phrase)) - FUNCTION_WORDS


def plain(text: str, *, asides: bool = False) -> str:
    """Return a sentence or title without markup and quotation marks, and without bracketed asides unless they stay."""
    text = " ".join((_TAG.sub(" ", unescape(text)) if "<" in text or "&" in text else text).split())
    text = _CLOSE_BRACKET.sub(" (", _SPLIT_WORD.sub("-", _SPLIT_NUMBER.sub(r"\1", text)))
    for _ in range(0 if asides else 2):  # brackets within brackets
        text = _ASIDE.sub(_aside_gap, text)
    return _GAP.sub(lambda gap: gap[1] or "", " ".join(_QUOTES.sub("", text).split()))


def _aside_gap(match: re.Match[str]) -> str:
    # Scripts without spaces get none.
    return "" if WIDE.match(match.string[match.start() - 1 : match.start()]) else " "


def balanced(text: str) -> bool:
    """Return True if every bracket and quotation mark is closed, in the right order."""
    open_marks: list[str] = []
    for character in _MARKS.findall(text):
        if character in _BRACKETS:
            if not open_marks or open_marks.pop() != _BRACKETS[character]:
                return False
        elif character != '"':
            open_marks.append(character)
    return not open_marks and text.count('"') % 2 == 0


def whole(text: str) -> str:
    """Return the text, without any brackets and quotation marks if one of them is left open."""
    return text if balanced(text) else " ".join(_MARKS.sub(" ", text).split())


class Phrase(NamedTuple):
    """A noun phrase as it stands in a sentence; ``article`` is "" or "the", "a", "an"."""

    text: str
    article: str


_PART = re.compile(r"\s[–—-]+\s|[^\w\s'’\-–.+/]|\.(?!\d)")
_TOKEN = re.compile(r"[^\W_][\w'’\-–.+/]*")
_NOUN_ENDINGS, _ADJECTIVE_ENDINGS = (tuple(DATA[name].split()) for name in ("noun_endings", "adjective_endings"))
_NOUNS, _VAGUE, _NOT_LAST = word_list("nouns"), word_list("vague_heads"), word_list("not_last")
_ARTICLES, _LINKS = frozenset({"the", "a", "an"}), frozenset({"of", "in", "among", "against"})
_BEFORE = (PREPOSITIONS | _ARTICLES) - {"to", "like", "as", "until", "per"}
# A phrase before one of them is whole; none of them is in a phrase.
_BEHIND = AUXILIARIES | PREPOSITIONS | word_list("behind_nouns")
_OTHERS = FUNCTION_WORDS | _BEHIND | word_list("connectives")
_RUN_ON = re.compile(r"[a-z]{4}[A-Z]")
LONGEST_PHRASE, LONGEST_CHAIN = 6, 12


def noun_phrases(sentence: str) -> list[Phrase]:
    """Return the noun phrases that surely begin and end where they seem to.

    One begins behind an article or a preposition, and ends before a preposition, an auxiliary, a relative pronoun or a
    punctuation mark. "of" and "in" join phrases: "the role of tau in memory". A word in doubt gives no phrase.
    """
    return [phrase for part in _PART.split(sentence) for phrase in _phrases(part.split())]


def _phrases(tokens: list[str]) -> Iterator[Phrase]:
    lowered = [*(token.lower() for token in tokens), "", ""]
    at = 0
    while at < len(tokens):
        before = lowered[at - 1] if at else ""
        if not (lowered[at] in _ARTICLES or before in _BEFORE):
            at += 1
            continue
        article = lowered[at] if lowered[at] in _ARTICLES else ""
        start = at + bool(article)
        end = link = _end(tokens, lowered, start)
        best = 0
        while link and link - start <= LONGEST_CHAIN:
            if _is_whole(lowered, link):
                best = link
            following = link + 1 + (lowered[link + 1] in _ARTICLES)
            link = _end(tokens, lowered, following) if lowered[link] in _LINKS else 0
        gerund = lowered[start].endswith("ing") and not article and lowered[start] not in _NOUNS
        if best and not gerund and lowered[end - 1] not in _VAGUE and lowered[best - 1] not in _VAGUE:
            yield Phrase(" ".join(tokens[start:best]), article)
        at = best or at + 1


def _end(tokens: list[str], lowered: list[str], start: int) -> int:
    """Return the position behind the noun phrase that begins at ``start``; 0 if none does."""
    at = start
    while at < len(tokens) and at - start <= LONGEST_PHRASE and _may_be_noun(tokens[at], lowered[at + 1]):
        if at > start and lowered[at].endswith("ed") and lowered[at] not in _NOUNS:  # "cells induced growth"
            break
        at += 1
    # Behind an article a verb's form is a noun: "the use of".
    if at == start and at < len(tokens) and start and lowered[at + 1] == "of" and lowered[start - 1] in _ARTICLES:
        at += lowered[at] in PLAIN_VERBS or lowered[at] in _THIRD
    return at if start < at <= start + LONGEST_PHRASE and lowered[at - 1][-1].isalnum() else 0


@lru_cache(maxsize=1 << 16)
def _may_be_noun(word: str, following: str) -> bool:
    """Return True if a word may belong to a noun phrase: an adjective, noun, name or number, and no verb."""
    lower = word.lower()
    label = word.isalpha() and word.isupper() and len(word) > 5
    if len(word) < 2 or lower in _OTHERS or label or _RUN_ON.search(word) or not _TOKEN.fullmatch(word):
        return False
    if word[0].isupper() or word[0].isdigit() or lower in _NOUNS:
        return True
    if lower in PLAIN_VERBS or lower in FINITE_VERBS or lower.endswith(("izes", "ifies", "n't", "ly")):
        return False
    # "a limited number", but no phrase ends with "limited".
    return not (lower.endswith(("ed", "ing")) and (not following or following in FUNCTION_WORDS))


def _is_whole(lowered: list[str], end: int) -> bool:
    """Return True if a noun phrase surely ends before the word at ``end``, and not with an adjective."""
    word, last = lowered[end], lowered[end - 1]
    adjective = last.endswith(("ous", "less", "ical", "ible", "lable", "rable")) and last not in _NOUNS
    if adjective or last in _NOT_LAST or last.endswith(("'s", "’s")):
        return False
    noun = last.endswith(_NOUN_ENDINGS) or (last.endswith("s") and not last.endswith(("ss", "us", "is")))
    if word.endswith("ed") and not noun:  # "the wool market closed"
        return not last.endswith(_ADJECTIVE_ENDINGS)
    closes = word in _THIRD or word in ("and", "or") or word.endswith(("ed", "ly"))
    return not word or word in _BEHIND or (noun and closes)
