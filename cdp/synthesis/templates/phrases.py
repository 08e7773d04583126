"""Sentences and key phrases of a document, by rules: no tagger and no model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from cdp.base.records import Document
from cdp.synthesis.templates.lexicon import (
    ADVERBS,
    BASE_FORM,
    CONNECTIVES,
    FUNCTION_WORDS,
    NOT_LAST,
    PARTICIPLES,
    POINTING,
    SECTION_LABELS,
)

# Characters of a document that are read: about twice what an LLM's prompt holds.
MOST_CHARACTERS = 20_000
# Words of a query; a longer one is a passage.
LONGEST = 28
# Characters; shorter sentences are headings or debris.
SHORTEST_SENTENCE, SHORTEST_WIDE = 12, 5

_BOUNDARY = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W_a-z])|(?<=[。！？؟۔।])[」』”）]*\s*|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Hon|Gen|Col|Capt|Lt|Sgt|Rev|Sen|Gov|vs|etc|approx|Jr|No|e\.g|i\.e|c|ca))\.$"
)
_INITIAL = re.compile(r"\b[A-Z]\.$")
_LONGEST_ABBREVIATION = 12
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]")
_PARTS = re.compile(r"[^\w\s'’\-–.]|(?<!\d)\.|\.(?!\d)")
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W_]+(?:['’\-–.,][^\W_]+)*")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,60}>")
_QUOTES = re.compile(r"[\"“”„«»]|``|''|(?<!\w)['‘’]|['‘’](?!\w)")
_ASIDE = re.compile(r" ?(?:\([^()]*\)|\[[^\[\]]*\]|（[^（）]*）)")
_GAP = re.compile(r" ([,.;:،])")
_BRACKETS = dict(zip(")]}」』）》】〉”»", "([{「『（《【〈“«", strict=True))
_EAST_ASIAN = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]")
_MARKS = re.compile("[" + re.escape("".join([*_BRACKETS, *_BRACKETS.values()])) + '"]')
_DEBRIS = re.compile(r"https?:|www\.|&\w+;|[\[\]{}<>|\\=_^~*#]|\.\.|[,;:]$|\s[,;:.]|^\W")
# Words that need a second: without it, the query was cut.
_PAIRED = {"either": "or", "both": "and", "between": "and", "neither": "nor", "whether": "or"}
_WH = frozenset({"What", "Who", "How", "Why", "When", "Where", "Which"})
_INVERTED = frozenset({"Is", "Are", "Was", "Were", "Does", "Do", "Did"})


def is_english(text: str) -> bool:
    """Return True if enough of the words are English function words to build English sentences around them."""
    found = [word.lower() in FUNCTION_WORDS for word in _LETTERS.findall(text[:4000])]
    return sum(found) > 0.18 * len(found)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, without those too short to hold a fact. Linear in the text's length."""
    joined: list[str] = []
    pieces: list[str] = []
    for piece in _BOUNDARY.split(text):
        piece = " ".join(piece.split())
        if not piece:
            continue
        if pieces and not _ends_in_abbreviation(pieces[-1], piece):
            joined.append(" ".join(pieces))
            pieces = []
        pieces.append(piece)
    joined.append(" ".join(pieces))
    return [text for text in joined if len(text) >= (SHORTEST_WIDE if _WIDE.search(text) else SHORTEST_SENTENCE)]


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


def key_phrases(sentences: Sequence[str]) -> list[tuple[str, int]]:
    """Return (key phrase, index of its first sentence) of English sentences, best first.

    A key phrase is a run of one to three content words, scored by the frequency of its words and its length, as RAKE
    does (Rose et al., 2010). A run counts that is a name or stands where a noun phrase stands: behind a determiner or
    a preposition.
    """
    found: dict[str, tuple[str, int]] = {}
    frequency: Counter[str] = Counter()
    for index, sentence in enumerate(sentences):
        for run in _runs(sentence):
            frequency.update(word.lower() for word in run)
            found.setdefault(" ".join(run).lower(), (" ".join(run), index))

    def score(phrase: str) -> float:
        parts = phrase.split()
        return sum(1 + 0.3 * frequency[word] for word in parts) * (0.6 if len(parts) == 1 else 1.0)

    return [found[phrase] for phrase in sorted(found, key=lambda phrase: -score(phrase))]


def _runs(sentence: str) -> Iterator[list[str]]:
    for part in _PARTS.split(sentence):
        run: list[str] = []
        before = ""
        for word in [*part.split(), ""]:
            if _is_content(word):
                run.append(word.strip("'’-–."))
                continue
            is_name = bool(before or run[1:]) and all(word[:1].isupper() for word in run)
            is_noun = before in _BEFORE_NOUN or before in BASE_FORM
            if 1 <= len(run) <= 3 and (is_name or is_noun) and not run[0].lower().endswith("ing"):
                yield run
            run, before = [], word.lower()


_BEFORE_NOUN = FUNCTION_WORDS - {"to", "and", "or", "but", "not"}


@lru_cache(maxsize=1 << 16)
def _is_content(word: str) -> bool:
    """Return True if a word may belong to a key phrase."""
    bare = word.strip("'’-–.")
    lowered = bare.lower()
    return (
        len(bare) > 1
        and bare[0].isalpha()
        and lowered not in FUNCTION_WORDS
        and lowered not in BASE_FORM
        and lowered not in ADVERBS
        and lowered not in PARTICIPLES
        and not (bare.istitle() and lowered in CONNECTIVES)
        and not (bare.isupper() and lowered in SECTION_LABELS)
        and not lowered.endswith(("ed", "ly"))
    )


def plain(text: str) -> str:
    """Return a sentence or title without markup, quotation marks and bracketed asides."""
    text = " ".join((_TAG.sub(" ", text) if "<" in text else text).split())
    for _ in range(2):  # brackets within brackets
        text = _ASIDE.sub(_aside_gap, text)
    return _GAP.sub(r"\1", " ".join(_QUOTES.sub("", text).split()))


def _aside_gap(match: re.Match[str]) -> str:
    # Scripts without spaces get none.
    return "" if _EAST_ASIAN.match(match.string[match.start() - 1 : match.start()]) else " "


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


def is_presentable(query: str) -> bool:
    """Return True if an English query is balanced, not cut mid-phrase, and its subject is no pronoun."""
    parts = query.rstrip("?.! ").split()
    if not parts or len(parts) > LONGEST or not balanced(query) or _DEBRIS.search(query):
        return False
    lowered = [word.lower().strip(",;") for word in parts]
    if lowered[-1] in NOT_LAST and len(parts) > 1:
        return False
    if any(first in lowered and second not in lowered for first, second in _PAIRED.items()):
        return False
    start = 4 if parts[:4] == ["Is", "it", "true", "that"] else 2 if parts[0] in _WH else int(parts[0] in _INVERTED)
    if start == 2 and lowered[1:2] in (["kind"], ["many"]):
        return True
    return lowered[start : start + 1] == [] or lowered[start] not in POINTING
