"""Splitting into sentences: abbreviations, stripping markup, is it English; words of ``data/words/english.toml``."""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape

from cdp.base.records import Document
from cdp.base.workspace import shipped_table

DATA = shipped_table("words/english")


def word_list(*names: str) -> frozenset[str]:
    """Return the words of the lists of those names."""
    return frozenset(word for name in names for word in DATA[name].split())


FUNCTION_WORDS = word_list("determiners", "prepositions", "auxiliaries", "pronouns", "other_function_words")
_VERBS: list[tuple[str, str, str]] = [entry.partition("-") for entry in DATA["verbs"].split()]


def _third_person(base: str) -> str:
    stem = base
    if base.endswith("y") and base[-2] not in "aeiou":
        stem = f"{base[:-1]}i"
    return f"{stem}es" if stem.endswith(("s", "x", "ch", "sh", "o", "i")) else f"{stem}s"


PLAIN_VERBS = frozenset(base for base, _, _ in _VERBS)
# The third person and, where it is irregular, the past: surely finite.
FINITE_VERBS = frozenset(map(_third_person, PLAIN_VERBS)) | {past for _, _, past in _VERBS if past}

# Characters of a document that are read: about twice what an LLM's prompt holds.
MAX_CHARACTERS = 20_000
# Characters; shorter sentences are headings or debris.
SHORTEST_SENTENCE, SHORTEST_WIDE = 12, 5

_BOUNDARY = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W_a-z])|(?<=[。！？؟۔।])[」』”）]*\s*|\n+")
# In a text without capitals.
_LOWER_BOUNDARY = re.compile(r"(?<=[a-z\d)%][.!?])\s+|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-ZА-Яء-ي]|Mr|Mrs|Ms|Dr|Prof|St|Hon|Maj|Brig|Gen|Adm|Cmdr|Sr|Mt|Ft|Fr|Col|Capt|Lt|Sgt|Rev|Sen|Gov|v|vs|etc|approx|Jr|No|e\.g|i\.e|c|ca"
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
_MARKS = re.compile("[" + re.escape("".join([*_BRACKETS, *_BRACKETS.values()])) + '„"]')
# A day or a rank in German, whose dot ends no sentence: "am 31. März", "der 2. Weltkrieg".
_ORDINAL = re.compile(r"\b(?:zum|vom|beim|de[mnrs]|die|bis|ab|seit|(?<!I )am|im) \d{1,2}\.$", re.IGNORECASE)


def is_english(text: str) -> bool:
    """Return True if enough of the words are English function words to build English sentences around them."""
    small = [word for word in _LETTERS.findall(text[:4000]) if not word[0].isupper()]  # names are of any language
    return sum(word in FUNCTION_WORDS for word in small) > 0.2 * len(small)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, without those too short to hold a fact. Linear in the text's length."""
    head = text[:2000]
    # Without capitals, in a script that has them.
    lower = head.islower() and sum(map(str.isascii, head)) > 0.9 * len(head)

    joined: list[str] = []
    pieces: list[str] = []
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
    if _ORDINAL.search(end):
        return True
    return bool(_ABBREVIATION.search(end)) and not (initial and following.split(None, 1)[0].lower() in FUNCTION_WORDS)


def read_sentences(document: Document) -> list[str]:
    """Return the sentences among the first ``MAX_CHARACTERS`` of a document, without one that is cut there."""
    found = sentences(document.text[:MAX_CHARACTERS])
    return found[:-1] if len(document.text) > MAX_CHARACTERS and len(found) > 1 else found


def plain_title(document: Document) -> str:
    """Return the title without markup, underscores, brackets and final punctuation."""
    return plain(document.title[:MAX_CHARACTERS].replace("_", " ")).strip(" .?!,;:。！？؟۔।、，،；：—–-")


def words(text: str) -> list[str]:
    """Return the words of a text, with inner hyphens and apostrophes."""
    return _WORD.findall(text)


@lru_cache(maxsize=1 << 14)
def content(phrase: str) -> frozenset[str]:
    """Return the content words of an English phrase, in small letters."""
    return frozenset(word.lower() for word in words(phrase)) - FUNCTION_WORDS


def plain(text: str, *, asides: bool = False) -> str:
    """Return a sentence or title without markup and quotation marks, and without bracketed asides unless they stay."""
    if "<" in text or "&" in text:
        text = _TAG.sub(" ", unescape(text))

    text = " ".join(text.split())
    text = _CLOSE_BRACKET.sub(" (", _SPLIT_WORD.sub("-", _SPLIT_NUMBER.sub(r"\1", text)))
    if not asides:
        text = _ASIDE.sub(_aside_gap, _ASIDE.sub(_aside_gap, text))  # brackets within brackets

    return _GAP.sub(lambda gap: gap[1] or "", " ".join(_QUOTES.sub("", text).split()))


def _aside_gap(match: re.Match[str]) -> str:
    # Scripts without spaces get none.
    return "" if WIDE.match(match.string[match.start() - 1 : match.start()]) else " "


def balanced(text: str) -> bool:
    """Return True if every bracket and quotation mark is closed, in the right order."""
    open_marks: list[str] = []
    for character in _MARKS.findall(text):
        if character in "“”" and open_marks[-1:] == ["„"]:  # German, Czech …; Polish, Hungarian …
            open_marks.pop()
        elif character in _BRACKETS:
            if not open_marks or open_marks.pop() != _BRACKETS[character]:
                return False
        elif character != '"':
            open_marks.append(character)
    return not open_marks and text.count('"') % 2 == 0


def whole(text: str) -> str:
    """Return the text, without any brackets and quotation marks if one of them is left open."""
    return text if balanced(text) else " ".join(_MARKS.sub(" ", text).split())
