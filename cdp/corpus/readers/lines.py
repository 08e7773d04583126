"""Lines of a page as text: joined to paragraphs, and those of Arabic and Hebrew put into the order they are read in."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from statistics import median
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
EAST_ASIAN = "\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_SEAM = re.compile(f"(?<=[{UNSPACED_LETTERS}{EAST_ASIAN}])\r(?=[{UNSPACED_LETTERS}{EAST_ASIAN}])")
_GAP = re.compile(f"(?<=[{EAST_ASIAN}]) (?=[{EAST_ASIAN}])")
_EAST_ASIAN_CHARACTER = re.compile(f"[{EAST_ASIAN}]")

# Letters and their marks, without the digits and the punctuation of these scripts.
_RTL = (
    "\u0591-\u05f4\u0610-\u061a\u0620-\u065f\u066e-\u06d3\u06d5-\u06ef\u06fa-\u06ff\u0750-\u08ff\ufb1d-\ufdff"
    "\ufe70-\ufefc"
)
_RIGHT_TO_LEFT = re.compile(f"[{_RTL}]")
_MARK = re.compile("[\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]")
_MARKS = re.compile(f"^{_MARK.pattern}+")
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
# Of the size of a font: empty paper that parts two words, letters that are one, and the widest letter.
LEAST_SPACE, SAME_PLACE, WIDEST = 0.18, 0.1, 1.5

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


def is_vocalised(text: str) -> bool:
    """Return True where letters of a text have marks, as of vowels in Arabic and Hebrew."""
    return not text.isascii() and _MARK.search(text) is not None


class Letter(NamedTuple):
    """A character of a page: where the pen stood, the size of its font, its box and that of its ink."""

    text: str
    left: float
    bottom: float
    size: float
    box: Box
    ink: Box


def as_drawn(letters: Sequence[Letter], ink: Sequence[Box]) -> tuple[str, list[Box]]:
    """Return a line from left to right as it is drawn, marks behind their letters, and the boxes of its characters.

    A letter and its marks have one box. ``ink`` holds the boxes of what is drawn on the page: beside a mark, where
    pdfium knows no widths, the empty paper tells whether there is a space. What is wider may hold one.
    """
    size, line = letters[0].size, median(letter.bottom for letter in letters)
    own = [letter.ink for letter in letters if not (letter.text.isspace() or is_vocalised(letter.text))]
    on_line = (box for box in ink if box[1] - 0.3 * size < line < box[3] + 0.1 * size)
    drawn = sorted([*own, *(box for box in on_line if box[2] - box[0] < WIDEST * size)])
    guessed = [letter.left for letter in letters if letter.text.isspace() and letter.box[0] == letter.box[2]]

    text, boxes = "", list[Box]()
    left, end, marked, written = math.inf, math.inf, False, ""
    for place in _places(letters):
        before, written = written, _with_marks(place)
        at, was_marked, marked = place[0].left, marked, is_vocalised(written)
        if marked and written == before and at - left < SAME_PLACE * size:
            continue  # which pdfium found twice
        seen = marked or was_marked or any(end <= space <= at for space in guessed)
        apart = seen and _widest_gap(drawn, left, at) > LEAST_SPACE * size
        if apart and not text.endswith(" "):
            text, boxes = f"{text} ", [*boxes, (at, line, at, line + size)]

        one = (at, line, max(letter.box[2] for letter in place), line + size)
        boxes += [one] * len(written) if len(place) > 1 else [place[0].box]
        text, left, end = text + written, at, place[0].ink[2]
    return text, boxes


def _places(letters: Sequence[Letter]) -> list[list[Letter]]:
    """Letters from left to right, those of one place together: of a ligature, or a letter and its marks."""
    places: dict[tuple[float, float], list[Letter]] = {}
    for letter in letters:
        if not letter.text.isspace() or letter.box[0] < letter.box[2]:
            places.setdefault((round(letter.left, 1), round(letter.bottom, 1)), []).append(letter)
    alone = {key for key, place in places.items() if all(is_vocalised(letter.text) for letter in place)}
    held = [place for key, place in places.items() if key not in alone]

    for mark in (places[key][0] for key in alone if held):
        middle = (mark.ink[0] + mark.ink[2]) / 2
        nearest = min(held, key=lambda place: max(place[0].ink[0] - middle, middle - place[0].ink[2]))
        nearest += places[round(mark.left, 1), round(mark.bottom, 1)]
    return sorted(held, key=lambda place: place[0].left)


def _with_marks(letters: Sequence[Letter]) -> str:
    """What stands in one place: a letter or ligature, its marks behind it. Some are stored turned around."""
    ordered = list(reversed(letters))  # of equal boxes, the last first
    ordered.sort(key=lambda letter: -letter.box[0])
    if is_vocalised(ordered[0].text):
        ordered.reverse()
    ordered.sort(key=lambda letter: is_vocalised(letter.text))
    return unicodedata.normalize("NFC", "".join(letter.text for letter in ordered))


def _widest_gap(drawn: Sequence[Box], left: float, right: float) -> float:
    """The widest empty place behind the first of two letters, by their left edges; infinite where a space is drawn."""
    widest, end = 0.0, None
    for box in drawn:
        if box[2] > left and box[0] < right:
            blank = box[0] == box[2] and box[1] == box[3]
            widest = math.inf if blank else max(widest, box[0] - (box[0] if end is None else end))
            end = max(end or left, box[2])
    return max(widest, right - (left if end is None else end))


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
