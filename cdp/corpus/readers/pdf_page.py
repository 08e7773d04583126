"""A page of a PDF by pdfium: its lines as they are seen, turned, cropped, column by column, its form filled in."""

from __future__ import annotations

import ctypes
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from math import hypot
from statistics import median
from typing import Any, NamedTuple

from cdp.corpus.readers import Report
from cdp.corpus.readers.lines import (
    EAST_ASIAN,
    Box,
    Letter,
    PageLine,
    as_drawn,
    in_logical_order,
    is_right_to_left,
    is_vocalised,
    runs_right_to_left,
    without_gaps,
)

# Of a page with fewer lines, the font of each is asked for.
LEAST_LINES = 8
# A page of which images cover so much is a picture, even with a date or a stamp printed on it.
IMAGE_SHARE = 0.3
# Points by which a crop box has to be smaller than its page to be looked at.
LEAST_CROP = 1.0
# Space between cells in heights of a line: more than between the words of a justified line.
CELL_GAP = 0.9
LONGEST_MARK = 3
# Of the height of a line, the width that the number or mark of an item never has.
LONGEST_LABEL = 1.8
# Of the height of a line, what is less than a space; points by which the edges of cells may differ; two letters or
# digits, not of scripts that stand in a grid.
NEAR, SAME_EDGE = 0.25, 0.5
_GLUED = re.compile(rf"[^\W_{EAST_ASIAN}]{{2}}")
# The most lines drawn on a page that are looked at; points of the width and height of one that parts cells; the lines
# of text that it parts at least; of the height of these, how far letters may reach into it.
MOST_PATHS, RULE_WIDTH, RULE_HEIGHT, LEAST_PARTED, OVERHANG = 2_000, 3.0, 5.0, 3, 0.15
# Words of a justified line stand evenly, even where its column is so narrow that cells could be no farther apart.
EVEN_GAPS, WIDEST_GAP = 0.05, 2.5
# Boxes of a page or part of it in which columns are looked for, and on each side of the gap between two.
LEAST_BOXES, LEAST_SIDE = 16, 6
# Of the size of a font: how far off the line a mark stands, and how far a letter's place from the next one's.
MARKS_HEIGHT, WIDEST_LETTER = 0.6, 1.5
# Parts of lines among which the one is looked for that another continues.
LINES_BACK = 20


# Upright lines by their place: the lower and upper end of each piece.
Rules = dict[float, list[tuple[float, float]]]


class _Line(NamedTuple):
    """A line of the page's text that begins ``at`` a character; the boxes of its characters where they are known."""

    at: int
    text: str
    boxes: list[Box] | None = None


class Page:
    """One page while it is read. Boxes are (left, bottom, right, top) as the page is shown."""

    def __init__(self, page: Any, form: Any, report: Report) -> None:
        self._page, self._form, self._report = page, form, report
        self._text = page.get_textpage()
        self._turn = page.get_rotation()
        self._crop = self._cropped()
        self.whole: str = self._text.get_text_range()
        # Where a character is left out, or counts as two, those behind it are at other places.
        self._in_place = len(self.whole) == self._text.count_chars()

    def close(self) -> None:
        """Give its memory back."""
        self._text.close()
        self._page.close()

    def lines(self) -> list[PageLine]:
        """The lines of the page in the order they are read in."""
        from pypdfium2 import raw

        full, lines, starts = 0.0, list[PageLine](), list[int]()
        texts = self.whole.split("\r\n")
        rtl = self._in_place and is_right_to_left(self.whole)
        mainly_rtl = rtl and runs_right_to_left(self.whole)
        # Lines as long as the longest are in one font: asking for each costs a tenth of the time.
        widest = max(map(len, texts)) if len(texts) >= LEAST_LINES else sys.maxsize
        begins = itertools.accumulate((len(line) + 2 for line in texts), initial=0)
        found = [_Line(at, line) for at, line in zip(begins, texts, strict=False)]

        if rtl and is_vocalised(self.whole):
            found = self._vocalised(found)

        for at, line, boxes in found:
            text = line.replace("\t", " ").strip()
            if text and self._crop is not None and self._in_place:
                text = self._within_crop(line, at).strip()

            if text:
                long = len(line) >= 0.8 * widest
                size = full if long and full else self._size(at)
                full = size if long else full
                if mainly_rtl or (rtl and is_right_to_left(text)):
                    places = boxes or [self._box(i) for i in range(at, at + len(line))]
                    text = in_logical_order(line, places, mainly_rtl)
                lines.append(PageLine(text if text.isascii() else without_gaps(text), size))
                starts.append(at + len(line) - len(line.lstrip()))

        n = self._text.count_rects()
        if n > len(lines) and not rtl:
            by_column = self._in_columns(n, len(lines))
            whole = self._in_place and self._crop is None
            lines = by_column or (self._with_cells(lines, starts, n) if whole else lines)

        if self._form is not None or raw.FPDFPage_GetAnnotCount(self._page.raw):
            self._fill_in(lines, starts)

        return lines

    def is_picture(self) -> bool:
        """Return True for a page of images; one without any text may be of outlines."""
        from pypdfium2 import raw

        if not self.whole.strip():
            # Text drawn as outlines is an image too.
            return next(iter(self._page.get_objects()), None) is not None
        left, bottom, right, top = self._page.get_cropbox()
        images = (image.get_bounds() for image in self._page.get_objects([raw.FPDF_PAGEOBJ_IMAGE]))
        covered = sum((b[2] - b[0]) * (b[3] - b[1]) for b in images)
        return covered >= IMAGE_SHARE * (right - left) * (top - bottom)

    def _size(self, at: int) -> float:
        """The size of a character as drawn: its font's by the scale of the text's matrix."""
        from pypdfium2 import raw

        matrix = raw.FS_MATRIX()
        size: float = raw.FPDFText_GetFontSize(self._text.raw, at)
        if raw.FPDFText_GetMatrix(self._text.raw, at, matrix):
            size *= hypot(matrix.c, matrix.d)
        return size

    def _cropped(self) -> Box | None:
        """The box that is shown, where it is smaller than the page."""
        crop, media = self._page.get_cropbox(), self._page.get_mediabox()
        inner = any(abs(a - b) > LEAST_CROP for a, b in zip(crop, media, strict=True))
        return crop if inner else None

    def _within_crop(self, line: str, at: int) -> str:
        """A line without the characters that are not shown."""
        assert self._crop is not None
        left, bottom, right, top = self._crop

        def shown(i: int) -> bool:
            box = self._text.get_charbox(i, loose=True)
            return left <= (box[0] + box[2]) / 2 <= right and bottom <= (box[1] + box[3]) / 2 <= top

        bare = line.strip()
        first = at + line.find(bare)
        if shown(first) and shown(first + len(bare) - 1):
            return line
        kept = [character.isspace() or shown(at + i) for i, character in enumerate(line)]
        hidden = (c if c.isspace() or not is_kept else "" for c, is_kept in zip(line, kept, strict=True))
        self._report.remove("".join(hidden), "outside of the page")
        return "".join(itertools.compress(line, kept))

    def _box(self, at: int) -> Box:
        return self._turned(self._text.get_charbox(at, loose=True))

    def _turned(self, box: Box, back: bool = False) -> Box:
        """A box of the page as it is shown; ``back``: the box of the page as it is written."""
        turn = -self._turn % 360 if back else self._turn
        left, bottom, right, top = box
        if turn == 90:
            return bottom, -right, top, -left
        if turn == 180:
            return -right, -top, -left, -bottom
        if turn == 270:
            return -top, left, -bottom, right
        return box

    def _vocalised(self, found: Sequence[_Line]) -> list[_Line]:
        """The lines, those with marks above and below their letters as they are drawn from left to right.

        A mark is a glyph of its own, off the line; what was said of a letter and its marks together stands where one of
        them does. So pdfium ends lines in the midst of a word, and sees spaces beside marks.
        """
        from pypdfium2 import raw

        joined: list[tuple[_Line, list[Letter]]] = []
        for line in found:
            size = self._size(line.at)  # asking for each letter's takes a third of the time
            letters = [self._letter(at, size) for at in range(line.at, line.at + len(line.text))]
            near = (other for _, other in reversed(joined[-LINES_BACK:]) if letters and _goes_on(other, letters))
            if (before := next(near, None)) is not None:
                before += letters
            elif letters:
                joined.append((line, letters))

        ink = [self._turned(drawn.get_bounds()) for drawn in self._page.get_objects([raw.FPDF_PAGEOBJ_TEXT])]
        lines = []
        for line, letters in joined:
            text = "".join(letter.text for letter in letters)
            lines.append(_Line(line.at, *as_drawn(letters, ink)) if is_vocalised(text) else line)
        return lines

    def _letter(self, at: int, size: float) -> Letter:
        from pypdfium2 import raw

        x, y = ctypes.c_double(), ctypes.c_double()
        raw.FPDFText_GetCharOrigin(self._text.raw, at, x, y)
        left, bottom, *_ = self._turned((x.value, y.value, x.value, y.value))
        ink = self._turned(self._text.get_charbox(at))
        return Letter(self.whole[at], left, bottom, size, self._box(at), ink)

    def _in_columns(self, n: int, n_lines: int) -> list[PageLine]:
        """The lines of a page whose columns were written line by line across the page; none for any other.

        pdfium gives text in the order of the file. Where that goes across columns its lines hold several boxes.
        """
        from pypdfium2 import raw

        if n < max(LEAST_BOXES, 1.5 * n_lines):
            return []
        boxes = [self._turned(self._text.get_rect(i)) for i in range(n)]
        ordered, found = _by_column(boxes)
        lines = []
        for shown in ordered if found else ():
            left, bottom, right, top = self._turned(shown, back=True)
            text = " ".join(self._text.get_text_bounded(left - 0.5, bottom - 0.5, right + 0.5, top + 0.5).split())
            x, y = self._turned((shown[0] + 1, (shown[1] + shown[3]) / 2) * 2, back=True)[:2]
            at = raw.FPDFText_GetCharIndexAtPos(self._text.raw, x, y, 5, 5)
            if text:
                lines.append(PageLine(text, self._size(max(0, at))))
        return lines

    def _with_cells(self, lines: list[PageLine], starts: list[int], n: int) -> list[PageLine]:
        """The lines, with tabs between the cells of rows. On a page with rows, a line break stands before a line that
        does not continue the one above: the paragraph behind a table, the next cell of several lines."""
        seams = self._seams(n)
        cuts: list[set[int]] = [set() for _ in lines]
        places = self._places_of_cells(lines, starts)
        rows = [_pieces(line.text, at) for line, at in zip(lines, places, strict=True)]
        if not seams and not any(_tabled(rows, cuts)):
            return lines

        rules = self._rules()
        if rules or seams:
            self._rejoin(lines, starts, {**seams, **rules})
            places = self._places_of_cells(lines, starts)
            cuts = self._cuts(lines, starts, rules, seams)
            rows = [_pieces(line.text, at | cut) for line, at, cut in zip(lines, places, cuts, strict=True)]

        tabled = _tabled(rows, cuts)
        if not any(tabled):
            return lines

        for is_table, numbers in itertools.groupby(range(len(rows)), key=lambda i: tabled[i]):
            if is_table:
                self._align(list(numbers), [line.text for line in lines], starts, cuts, rows)

        bottoms = [self._box(at)[1] for at in starts]

        steps = [0.0, *(above - below for above, below in itertools.pairwise(bottoms))]
        usual = median([step for step in steps if step > 0] or [0.0])
        found = []
        for (text, size), row, is_row, step in zip(lines, rows, tabled, steps, strict=True):
            # Far above is the next column, which continues the paragraph.
            apart = step > 1.4 * usual or -10 * usual < step < 0
            found.append(PageLine("\t".join(row).rstrip("\t") if is_row else "\n" + text if apart else text, size))

        return found

    def _places_of_cells(self, lines: Sequence[PageLine], starts: Sequence[int]) -> list[set[int]]:
        """Where in each line a cell begins, by the space before it."""
        places, even = [], dict[int, set[int]]()
        for n, ((text, _), at) in enumerate(zip(lines, starts, strict=True)):
            ends, gaps = {0}, []
            for space in re.finditer(" +", text) if self._text.count_rects(at, len(text)) > 1 else ():
                _, bottom, left, top = self._box(at + space.start() - 1)
                gaps.append((self._box(at + space.end())[0] - left) / ((top - bottom) or 1))
                if gaps[-1] > CELL_GAP:
                    ends.add(space.end())

            if len(gaps) > 1 and max(gaps) - min(gaps) < EVEN_GAPS and max(gaps) < WIDEST_GAP:
                even[n], ends = ends, {0}

            places.append(ends)

        # A row of the longest text in each column is as even; but rows with as many cells stand beside it.
        for n, ends in even.items():
            if len(ends) > 2 and len(ends) in map(len, places[max(0, n - 1) : n + 2]):
                places[n] = ends
        return places

    def _seams(self, n: int) -> Rules:
        """Where texts that were drawn apart touch, in several lines at one place: cells without a line between."""
        seams: Rules = {}
        long = set()
        boxes = [self._turned(self._text.get_rect(i)) for i in range(n)]
        for before, (left, bottom, _, top) in itertools.pairwise(boxes):
            height = max(before[3] - before[1], top - bottom)
            if abs(before[2] - left) < NEAR * height and before[1] < (bottom + top) / 2 < before[3]:
                at = round((before[2] + left) / 2)
                place = next((place for place in (at, at - 1, at + 1) if place in seams), at)
                seams.setdefault(place, []).append((bottom, top))
                if before[2] - before[0] > LONGEST_LABEL * height:
                    long.add(place)
        return {place: seams[place] for place in long if len(seams[place]) >= LEAST_PARTED}

    def _rejoin(self, lines: list[PageLine], starts: list[int], rules: Rules) -> None:
        """Put cells back into their rows: pdfium ends a line where a short text stands far from the next."""
        for n in reversed(range(1, len(lines))):
            end, at = starts[n - 1] + len(lines[n - 1].text), starts[n]
            before, behind = self._box(end - 1), self._box(at)
            middle = (before[1] + before[3]) / 2
            between = (place for place in rules if before[2] - 1 < place < behind[0] + 1)
            same_row = behind[1] < middle < behind[3] and any(_spanned(rules[place], middle) for place in between)
            if same_row and at >= end:
                lines[n - 1] = lines[n - 1]._replace(text=f"{lines[n - 1].text}{' ' * (at - end)}{lines[n].text}")
                del lines[n], starts[n]

    def _cuts(self, lines: Sequence[PageLine], starts: Sequence[int], rules: Rules, seams: Rules) -> list[set[int]]:
        """Where the upright lines of a table part each text, even between two letters whose cells touch.

        A line that crosses a letter of any of the texts beside it parts none: it is of a drawing, or under the text.
        Seams part words of lines that follow one another: a word may be drawn in two pieces, but not there in each.
        """
        cuts: list[set[int]] = [set() for _ in lines]
        boxes = [[self._box(i) for i in range(at, at + len(text))] for (text, _), at in zip(lines, starts, strict=True)]

        for (place, spans), is_seam in [*zip(rules.items(), repeat(False)), *zip(seams.items(), repeat(True))]:
            found, crosses = [], False
            for n, letters in enumerate(boxes):
                bottom, top = letters[0][1], letters[0][3]
                at = sum(box[0] + box[2] < 2 * place for box in letters)
                if not 0 < at < len(letters) or not _spanned(spans, (bottom + top) / 2):
                    continue
                reach = OVERHANG * (top - bottom)
                text = lines[n].text
                if is_seam and not _GLUED.match(text[:at].rstrip()[-1:] + text[at:].lstrip()[:1]):
                    continue
                crosses = crosses or not letters[at - 1][2] - reach < place < letters[at][0] + reach
                found.append((n, at))

            if is_seam and found:
                edges = [boxes[n][at][0] for n, at in found]
                follow = found[-1][0] - found[0][0] < len(found)
                crosses = crosses or not follow or max(edges) - min(edges) > SAME_EDGE
            for n, at in found if len(found) >= LEAST_PARTED and not crosses else ():
                cuts[n].add(at)
        return cuts

    def _rules(self) -> Rules:
        """The upright lines drawn on the page."""
        from pypdfium2 import raw

        drawn = itertools.islice(self._page.get_objects([raw.FPDF_PAGEOBJ_PATH]), MOST_PATHS + 1)
        boxes = [self._turned(path.get_bounds()) for path in drawn]
        rules: Rules = {}
        for left, bottom, right, top in boxes if len(boxes) <= MOST_PATHS else ():
            if right - left < RULE_WIDTH and top - bottom > RULE_HEIGHT:
                rules.setdefault(round((left + right) / 2), []).append((bottom, top))
        return rules

    def _align(
        self,
        numbers: Sequence[int],
        texts: Sequence[str],
        starts: Sequence[int],
        cuts: Sequence[set[int]],
        rows: list[list[str]],
    ) -> None:
        """Put the words of a table's rows into its columns: some leave a cell empty, or fill two to their edges."""
        places = {n: self._words(texts[n], starts[n], cuts[n]) for n in numbers}
        most = max(len(rows[n]) for n in numbers)
        edges: list[list[tuple[float, float]]] = []
        for n in numbers:
            if len(rows[n]) == most:
                ends = list(itertools.accumulate(len(cell.split()) for cell in rows[n]))[:-1]
                edges.append([(places[n][at - 1][2], places[n][at][1]) for at in ends])

        touching = any(cuts[n] for n in numbers)
        gaps: list[tuple[float, float]] = []
        for gap in zip(*edges, strict=True):
            end, begin = max(left for left, _ in gap), min(right for _, right in gap)
            if begin <= end - touching:
                return
            gaps.append((min(end, begin), max(end, begin)))

        for n, words in places.items():
            across = (left < gap[0] and right > gap[1] for _, left, right in words for gap in gaps)
            if any(across):
                continue  # a title across the table
            cells: list[list[str]] = [[] for _ in range(most)]
            for word, left, right in words:
                cells[sum(left + right > sum(gap) for gap in gaps)].append(word)
            rows[n] = [" ".join(cell) for cell in cells]

    def _words(self, text: str, at: int, cuts: set[int]) -> list[tuple[str, float, float]]:
        """The words of a line, divided where it is cut, each with its left and right edge."""
        words = []
        for begin, end in itertools.pairwise(sorted({0, *cuts, len(text)})):
            for word in re.compile(r"\S+").finditer(text, begin, end):
                words.append((word[0], self._box(at + word.start())[0], self._box(at + word.end() - 1)[2]))
        return words

    def _fill_in(self, lines: list[PageLine], starts: list[int]) -> None:
        """Put what is written into the page's form, and on it, behind the text to its left."""
        for text, box in sorted(self._written(), key=lambda pair: (-pair[1][3], pair[1][0])):
            self._report.count(text, "form fields")
            places = list(map(self._box, starts)) if len(starts) == len(lines) else []
            beside = [i for i, place in enumerate(places) if _is_left_of(place, box)]
            if beside:
                at = beside[-1]
                lines[at] = lines[at]._replace(text=f"{lines[at].text} {text}")
                # A filled line is a paragraph of its own.
                for i in range(max(1, at), min(at + 2, len(lines))):
                    lines[i] = lines[i]._replace(text="\n" + lines[i].text.removeprefix("\n"))
                continue

            at = next((i for i, place in enumerate(places) if place[3] < box[1]), len(lines))
            lines.insert(at, PageLine(f"\n{text}" if at else text, lines[at - 1].size if lines else 0))
            starts.insert(at, starts[at - 1] if starts else 0)

    def _written(self) -> Iterator[tuple[str, Box]]:
        """(text, box) of the fields of a form that are filled in, and of text that was typed onto the page."""
        from pypdfium2 import raw

        form = self._form.raw if self._form is not None else None
        for number in range(raw.FPDFPage_GetAnnotCount(self._page.raw)):
            note = raw.FPDFPage_GetAnnot(self._page.raw, number)
            kind, rectangle, text = raw.FPDFAnnot_GetSubtype(note), raw.FS_RECTF(), ""
            seen = not raw.FPDFAnnot_GetFlags(note) & (raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW)
            if seen and kind == raw.FPDF_ANNOT_FREETEXT:
                text = _string(partial(raw.FPDFAnnot_GetStringValue, note, b"Contents"))
            elif seen and kind == raw.FPDF_ANNOT_WIDGET and form is not None:
                text = self._value(form, note)
            raw.FPDFAnnot_GetRect(note, rectangle)
            raw.FPDFPage_CloseAnnot(note)
            if text := " ".join(text.split()):
                box = (rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
                yield text, self._turned(box)

    @staticmethod
    def _value(form: Any, note: Any) -> str:
        from pypdfium2 import raw

        kind = raw.FPDFAnnot_GetFormFieldType(form, note)
        value = partial(raw.FPDFAnnot_GetFormFieldValue, form, note)
        if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
            if not raw.FPDFAnnot_IsChecked(form, note):
                return ""
            export = _string(partial(raw.FPDFAnnot_GetFormFieldExportValue, form, note))
            return export if export.isalpha() and len(export) > 1 and export.lower() not in ("on", "off") else "✓"
        if kind in (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX):
            secret = kind == raw.FPDF_FORMFIELD_TEXTFIELD and raw.FPDFAnnot_GetFormFieldFlags(form, note) & PASSWORD
            return "" if secret else _string(value)
        return ""


def _spanned(spans: Sequence[tuple[float, float]], height: float) -> bool:
    return any(low < height < high for low, high in spans)


def _tabled(rows: Sequence[Sequence[str]], cuts: Sequence[set[int]]) -> list[bool]:
    """Which lines are rows of a table: those of several cells, and those that were cut.

    Of two cells is also a heading with its number, an item with its mark, a line with a date at its end.
    """
    n_cells = [1, *map(len, rows), 1]
    tabled = []
    for i, row in enumerate(rows):
        pair = len(row) == 2 and len(row[0]) > LONGEST_MARK and max(n_cells[i], n_cells[i + 2]) > 1
        tabled.append(len(row) > 2 or pair or bool(cuts[i]))
    return tabled


def _pieces(text: str, places: set[int]) -> list[str]:
    """A text divided at these places, without the pieces that are blank."""
    pieces = (text[i:j].strip() for i, j in itertools.pairwise(sorted({0, *places, len(text)})))
    return [piece for piece in pieces if piece]


def _goes_on(before: Sequence[Letter], letters: Sequence[Letter]) -> bool:
    """Return True for letters that stand right behind a line, at its height."""
    size = max(before[0].size, letters[0].size)
    off = median(letter.bottom for letter in before) - median(letter.bottom for letter in letters)
    places, others = ([letter.left for letter in part] for part in (before, letters))
    gap = max(min(others) - max(places), min(places) - max(others))
    return abs(off) < MARKS_HEIGHT * size and gap < WIDEST_LETTER * size


def _is_left_of(place: Box, box: Box) -> bool:
    """Return True for what stands beside a box, to its left, by most of its height."""
    _, bottom, _, top = place
    return min(top, box[3]) - max(bottom, box[1]) > 0.5 * (top - bottom) and place[0] < box[2]


# The flag of a field whose value is not shown (PDF 32000-1, table 228).
PASSWORD = 1 << 13


def _string(ask: Callable[[Any, int], int]) -> str:
    """A text that pdfium writes into a buffer as UTF-16."""
    size = ask(None, 0)
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    ask(buffer, size)
    return bytes(buffer)[:size].decode("utf-16-le", "replace").rstrip("\0")


def _by_column(boxes: Sequence[Box]) -> tuple[list[Box], bool]:
    """(lines from top to bottom, column by column; whether there are columns)."""
    left, right = min((b[0] for b in boxes), default=0), max((b[2] for b in boxes), default=0)
    gaps = [left + (right - left) * i / 100 for i in range(25, 76)] if len(boxes) >= LEAST_BOXES else []
    gap = min(gaps, key=lambda x: sum(b[0] < x < b[2] for b in boxes), default=0.0)

    sides = [b for b in boxes if b[2] <= gap], [b for b in boxes if b[0] >= gap]
    # Columns of prose fill their width; the cells of a table do not, and a table is read by rows.
    full = [sum(b[2] - b[0] for b in side) / len(side) for side in sides if len(side) >= LEAST_SIDE]
    if len(full) < 2 or sum(map(len, sides)) < 0.8 * len(boxes) or min(full) < 0.5 * (right - left) / 2:
        return _lines_of(boxes), False

    ordered: list[Box] = []
    part: list[Box] = []
    # Lines across the gap (titles, figures' captions) divide the page.
    for box in [*sorted(boxes, key=lambda b: -b[3]), None]:
        if box is not None and not box[0] < gap < box[2]:
            part.append(box)
            continue
        for side in ([b for b in part if b[2] <= gap], [b for b in part if b[0] >= gap]):
            ordered += _by_column(side)[0]
        ordered += [] if box is None else [box]
        part = []

    return ordered, True


def _lines_of(boxes: Sequence[Box]) -> list[Box]:
    """Boxes side by side joined to lines, from top to bottom."""
    lines: list[Box] = []
    for box in sorted(boxes, key=lambda b: (-round(b[1]), b[0])):
        last = lines[-1] if lines else None
        if last and min(last[3], box[3]) - max(last[1], box[1]) > 0.5 * (box[3] - box[1]):
            lines[-1] = (min(last[0], box[0]), min(last[1], box[1]), max(last[2], box[2]), max(last[3], box[3]))
        else:
            lines.append(box)
    return lines
