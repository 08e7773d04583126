"""Lines of a page as text: joined to paragraphs, and those of Arabic and Hebrew put into the order they are read in."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from cdp.corpus.documents import UNSPACED_LETTERS

# What pdfium puts for a hyphen at a line's end; others end a line with the hyphen itself, soft, or U+2010.
HYPHEN = "\ufffe"
_LINE_END = re.compile(r"[-\u2010\xad](?=\r)")
_ENDS_DIVIDED = re.compile(rf"[^\W\d_][-\u2010\xad{HYPHEN}]$")
# Each begins at a word and takes it whole: a text of one long word is looked through once.
_DIVIDED = re.compile(rf"(?<![\w'’-])([\w'’-]++){HYPHEN}\r?([\w'’]+)")
_PARTS = re.compile(rf"(?<![\w'’-])[\w'’-]*+(?:{HYPHEN}|[\u2010\xad]$|(?<=-)$)\n?[\w'’]*", re.M)
_WORD = re.compile(r"[\w-]+")
# Behind these a hyphen stands for a word that comes later: "Vor- und Nachteile", "two- or three-year".
_SUSPENDED = frozenset(("and", "or", "to", "und", "oder", "bis", "sowie", "et", "ou", "y", "o", "e", "en", "of", "och"))

# First parts of English compounds, where no other place of the document tells; what may follow in a divided word.
_STARTS = frozenset(
    ("well", "self", "long", "short", "high", "low", "half", "full", "large", "small", "one", "two", "three")
)
_ENDINGS = ("est", "ness", "less", "ment", "ward", "wards", "ways", "ability")

# Scripts whose lines are joined without a space, with their punctuation.
_EAST_ASIAN = "\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_SEAM = re.compile(f"(?<=[{UNSPACED_LETTERS}{_EAST_ASIAN}])\r(?=[{UNSPACED_LETTERS}{_EAST_ASIAN}])")
_GAP = re.compile(f"(?<=[{_EAST_ASIAN}]) (?=[{_EAST_ASIAN}])")
_EAST_ASIAN_CHARACTER = re.compile(f"[{_EAST_ASIAN}]")

# Letters and their marks, without the digits and the punctuation of these scripts.
_RTL = (
    "\u0591-\u05f4\u0610-\u061a\u0620-\u065f\u066e-\u06d3\u06d5-\u06ef\u06fa-\u06ff\u0750-\u08ff\ufb1d-\ufdff"
    "\ufe70-\ufefc"
)
_RIGHT_TO_LEFT = re.compile(f"[{_RTL}]")
_MARKS = re.compile("^[\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u06d6-\u06ed]+")
_ARABIC = re.compile("[\u0620-\u064a\u066e-\u06d3]")
# Letters from right to left, a number or word from left to right, a mark. Beside Hebrew, signs belong to numbers.
_RUN = re.compile(rf"[{_RTL}]+|[^\W{_RTL}](?:[\w.,:/@+−-]*[^\W{_RTL}])?|[^\w\s]")
_SIGNED_RUN = re.compile(rf"[{_RTL}]+|[$€£₪]?[^\W{_RTL}](?:[\w.,:/@+−-]*[^\W{_RTL}])?%?|[^\w\s]")
_NO_LETTER = re.compile(r"[\W\d_]+")
_LATIN = re.compile(rf"[^\W\d_{_RTL}]")
_BRACKETS = ("()", "[]", "{}", "«»")
_BRACKET = re.compile(r"[()\[\]{}«»]")
# Of the height of a line, what is between words and not between the letters of one.
_SPACE = 0.12

Box = tuple[float, float, float, float]


class PageLine(NamedTuple):
    """``size`` is that of the font in points as it is drawn, 0 where the text was recognised.

    A line break stands before a text that does not continue the line above; tabs are between the cells of a row.
    """

    text: str
    size: float


class Joined:
    """Joins lines to a paragraph.

    A hyphen at a line's end is that of a compound or of a divided word: the words of the document decide which it is,
    without those that are halves themselves.
    """

    def __init__(self, pages: Sequence[Sequence[str]]) -> None:
        self._pages = pages

    @cached_property
    def _words(self) -> set[str]:
        words: set[str] = set()
        for lines in self._pages:
            words.update(_WORD.findall(_PARTS.sub(" ", "\n".join(lines))))
        return words

    @cached_property
    def _lower(self) -> set[str]:
        return {word.lower() for word in self._words}

    def __call__(self, lines: Sequence[str]) -> str:
        text = "\r".join(lines)
        if HYPHEN in text or _LINE_END.search(text):
            text = re.sub(rf"(?<=\w){_LINE_END.pattern}", HYPHEN, text)
            text = _DIVIDED.sub(self._whole, text).replace(f"{HYPHEN}\r", "- ").replace(HYPHEN, "-")
        if not text.isascii():
            text = _SEAM.sub("", text)
        return text.replace("\r", " ")

    def _whole(self, match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        if second.lower() in _SUSPENDED:
            return f"{first}- {second}"
        if (first + second).lower() in self._lower:
            return first + second
        digits = first[-1].isdigit() or second[0].isdigit()
        # Anglo-Saxon, CDU-Politiker; a line in capitals may divide a word.
        capitals = first.isupper() != second.isupper() if len(first) > 1 else first.isupper()
        named = (second[0].isupper() and not second.isupper()) or (capitals and not second.isupper())
        usual = first.lower() in _STARTS and len(second) > 3 and not second.endswith(_ENDINGS)
        # German writes nouns large: "versammlung" is no word where "Versammlung" is.
        words = first.lower() in self._lower and second in self._words
        compound = usual or words or f"{first}-{second}".lower() in self._lower
        return f"{first}-{second}" if digits or named or compound else first + second


def without_gaps(line: str) -> str:
    """A line of Chinese or Japanese without the spaces that were drawn between its characters."""
    gaps = len(_GAP.findall(line))
    return _GAP.sub("", line) if gaps > 1 and 2 * gaps >= len(_EAST_ASIAN_CHARACTER.findall(line)) - 1 else line


def is_right_to_left(text: str) -> bool:
    """Return True where a text has a letter that is written from right to left."""
    return not text.isascii() and _RIGHT_TO_LEFT.search(text) is not None


def runs_right_to_left(text: str) -> bool:
    """Return True where more letters of a text are written from right to left than from left to right."""
    return is_right_to_left(text) and len(_RIGHT_TO_LEFT.findall(text)) >= len(_LATIN.findall(text))


class _Run(NamedTuple):
    text: str
    left: float
    right: float
    rtl: bool


def in_logical_order(line: str, boxes: Sequence[Box], rtl: bool) -> str:
    """A line in the order it is read in. ``boxes`` are those of its characters; ``rtl``: its page runs right to left.

    A PDF holds its characters in the order they are drawn in, which is that of reading in some files, the reverse in
    others, and in Chromium's changes from word to word: where each stands tells.
    """
    pattern = _RUN if _ARABIC.search(line) else _SIGNED_RUN
    runs = [_placed(match[0], boxes[match.start() : match.end()]) for match in pattern.finditer(line)]
    runs.sort(key=lambda run: -run.right if rtl else run.left)

    height = max(box[3] - box[1] for box in boxes)
    ordered: list[_Run] = []
    against: list[_Run] = []
    # Words of the other direction that follow one another are read the other way, numbers and marks among them.
    for run in [*runs, None]:
        letters = run is not None and not _NO_LETTER.fullmatch(run.text)
        if run is not None and (run.rtl != rtl if letters else bool(against)):
            against.append(run)
            continue
        # Marks behind the last of them belong to the line.
        end = max((i for i, other in enumerate(against, 1) if other.text[0].isalnum()), default=0)
        if end:
            left, right = min(other.left for other in against[:end]), max(other.right for other in against[:end])
            ordered.append(_Run(_written(against[:end][::-1], height), left, right, not rtl))
        ordered += [*against[end:], *([run] if run is not None else [])]
        against = []
    text = _written(ordered, height)
    return _BRACKET.sub(_faced, text) if rtl else text


def _written(runs: Sequence[_Run], height: float) -> str:
    """Runs one behind the other, with a space between two words, and where they stand apart."""
    text = "".join(run.text for run in runs[:1])
    for before, run in itertools.pairwise(runs):
        apart = max(before.left, run.left) - min(before.right, run.right) > _SPACE * height
        both = before.text[-1].isalnum() and run.text[0].isalnum()
        text += f" {run.text}" if apart or both else run.text
    return text


def _faced(match: re.Match[str]) -> str:
    """A bracket that opens or closes as its place says: some are stored as they are drawn, others as they are meant."""
    text, at, bracket = match.string, match.start(), match[0]
    pair = next(pair for pair in _BRACKETS if bracket in pair)
    before, behind = text[at - 1 : at], text[at + 1 : at + 2]
    if not behind or not behind.isalnum():
        return pair[1]
    return pair[0] if not before or before.isspace() else bracket


def _placed(run: str, boxes: Sequence[Box]) -> _Run:
    """A run with its letters in the order of reading."""
    rtl = is_right_to_left(run)
    letters = list(zip(run, boxes, strict=True))
    if rtl and len(run) > 1:
        places = [box[0] for character, box in letters if not _MARKS.match(character)]
        if len(places) > 1 and places[0] < places[-1]:
            letters.reverse()
        # The letters of a ligature have one place; they are turned with the others, and not as they are read.
        ligatures = (list(group) for _, group in itertools.groupby(letters, key=lambda letter: letter[1]))
        letters = list(itertools.chain.from_iterable(reversed(group) for group in ligatures))

    text = "".join(character for character, _ in letters)
    if rtl and (marks := _MARKS.match(text)):
        text = text[marks.end() :] + marks[0]
    return _Run(text, min(box[0] for box in boxes), max(box[2] for box in boxes), rtl)


def unbroken(pages: Sequence[list[PageLine]]) -> None:
    """Give the half of a word that a page begins with to the page that its other half ends."""
    for lines, following in itertools.pairwise(pages):
        if not lines or not following or not _ENDS_DIVIDED.search(lines[-1].text):
            continue
        half, _, rest = following[0].text.partition(" ")
        if half[:1].islower():
            lines[-1] = lines[-1]._replace(text=f"{lines[-1].text[:-1]}{HYPHEN}{half}")
            following[:1] = [following[0]._replace(text=rest)] if rest else []
