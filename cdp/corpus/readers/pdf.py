"""PDF by pdfium: lines joined to paragraphs, tables and headings; running headers and scanned pages."""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format
from cdp.corpus.repeats import EDGE_LINES, running_lines, without_running

# A line in a font so much larger than the page's text is a heading.
HEADING_SIZE = 1.15
# Characters of a line in a larger font that can still be a heading.
LONGEST_HEADING_LINE = 150
PAGES_A_REPORT = 50
# Of a page with fewer lines, the font of each is asked for.
LEAST_LINES = 8
OCR = "run OCR first (for example OCRmyPDF)"


def pdf_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Paragraphs, tables and headings of a PDF by pdfium, without running headers and footers.

    Pages without other text are counted in ``report`` where they hold an image; a file of such pages is refused.
    """
    from pypdfium2 import raw

    document = _opened_pdf(path, passwords)
    pages: list[list[tuple[str, float]]] = []
    pictured: set[int] = set()
    with document:
        for number, page in enumerate(document):
            if number % PAGES_A_REPORT == 0:
                report.progress(number, len(document))
            text_page = page.get_textpage()
            at, full, lines, starts = 0, 0.0, [], []
            texts = text_page.get_text_range().split("\r\n")
            # Lines as long as the longest are in one font: asking for each costs a tenth of the time.
            widest = max(map(len, texts)) if len(texts) >= LEAST_LINES else sys.maxsize
            for line in texts:
                if text := line.replace("\t", " ").strip():
                    long = len(line) >= 0.8 * widest
                    size = full if long and full else raw.FPDFText_GetFontSize(text_page.raw, at)
                    full = size if long else full
                    lines.append((text, size))
                    starts.append(at + len(line) - len(line.lstrip()))
                at += len(line) + 2
            n = text_page.count_rects()
            if n > len(lines):
                # Where a character is left out, or counts as two, those behind it are at other places.
                in_place = at == text_page.count_chars() + 2
                by_column = _in_columns(text_page, n, len(lines))
                lines = by_column or (_with_cells(text_page, lines, starts) if in_place else lines)
            pages.append(lines)
            if len(lines) <= 2 * EDGE_LINES:  # more cannot all be running lines
                # Text drawn as outlines is an image too, but so is the rule above a page number.
                kinds = [raw.FPDF_PAGEOBJ_IMAGE] if lines else None
                pictured |= {number + 1 for _ in itertools.islice(page.get_objects(kinds), 1)}
            text_page.close()
            page.close()
    by_page = [[text for text, _ in lines] for lines in pages]
    running = running_lines(by_page)
    kept = [without_running(lines, running) for lines in by_page]
    if not any(kept):
        raise RefusedValueError("scanned", f"its pages are images without text: {OCR}")
    empty = [number for number, lines in enumerate(kept, start=1) if not lines and number in pictured]
    report.pages, report.scanned = len(pages), len(empty)
    if empty:
        shown = ", ".join(map(str, empty[:20])) + (" …" if len(empty) > 20 else "")
        report.notes.append(f"{len(empty):,} of {len(pages):,} pages have no text (scanned): {shown}; {OCR}")
    kept, report.running = (by_page, {}) if report.keep_repeated else (kept, running)
    characters: Counter[float] = Counter()
    for lines in pages:
        for text, size in lines:
            characters[size] += len(text)
    body = max(characters, key=lambda size: characters[size])
    sizes = sorted({round(size) for lines in pages for _, size in lines if size > HEADING_SIZE * body}, reverse=True)
    joined = _Hyphens(by_page)
    for number, lines in enumerate(pages, start=1):
        yield from _page_blocks(kept[number - 1], dict(lines), body, sizes, number, joined)


def _opened_pdf(path: Path, passwords: Sequence[str]) -> Any:
    import pypdfium2

    for password in (None, *passwords):
        try:
            return pypdfium2.PdfDocument(path, password=password)
        except pypdfium2.PdfiumError as error:
            if "password" not in str(error).lower():
                raise RefusedValueError("unreadable file", "it is damaged, or no PDF") from None
    raise RefusedValueError("encrypted", "it is protected by a password")


Box = tuple[float, float, float, float]


def _in_columns(page: Any, n: int, n_lines: int) -> list[tuple[str, float]]:
    """(line, font size) of a page whose columns were written line by line across the page; empty for any other.

    pdfium gives text in the order of the file. Where that goes across columns its lines hold several boxes of text.
    """
    from pypdfium2 import raw

    if n < max(LEAST_BOXES, 1.5 * n_lines):
        return []
    boxes = [page.get_rect(i) for i in range(n)]
    ordered, found = _by_column(boxes)
    lines = []
    for left, bottom, right, top in ordered if found else ():
        text = " ".join(page.get_text_bounded(left - 0.5, bottom - 0.5, right + 0.5, top + 0.5).split())
        at = raw.FPDFText_GetCharIndexAtPos(page.raw, left + 1, (bottom + top) / 2, 5, 5)
        if text:
            lines.append((text, raw.FPDFText_GetFontSize(page.raw, max(0, at))))
    return lines


# Boxes of a page or part of it in which columns are looked for, and on each side of the gap between two.
LEAST_BOXES, LEAST_SIDE = 16, 6


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


def _with_cells(page: Any, lines: list[tuple[str, float]], starts: Sequence[int]) -> list[tuple[str, float]]:
    """The lines, with tabs between the cells of rows. On a page with rows, a line break stands before a line that does
    not continue the one above: the paragraph behind a table, the next cell of several lines."""
    rows: list[list[str]] = []
    for (text, _), at in zip(lines, starts, strict=True):
        ends = [0]
        for space in re.finditer(" +", text) if page.count_rects(at, len(text)) > 1 else ():
            _, bottom, left, top = page.get_charbox(at + space.start() - 1, loose=True)
            if page.get_charbox(at + space.end(), loose=True)[0] - left > CELL_GAP * (top - bottom):
                ends.append(space.end())
        rows.append([text[i:j].rstrip() for i, j in itertools.pairwise([*ends, len(text)])])
    n_cells = [1, *map(len, rows), 1]
    # Of two cells is also a heading with its number, an item with its mark, a line with a date at its end.
    tabled = [
        len(row) > 2 or (len(row) == 2 and len(row[0]) > LONGEST_MARK and max(n_cells[i], n_cells[i + 2]) > 1)
        for i, row in enumerate(rows)
    ]
    if not any(tabled):
        return lines
    bottoms = [page.get_charbox(at, loose=True)[1] for at in starts]
    steps = [0.0, *(above - below for above, below in itertools.pairwise(bottoms))]
    usual = median([step for step in steps if step > 0] or [0.0])
    found = []
    for (text, size), row, is_row, step in zip(lines, rows, tabled, steps, strict=True):
        # Far above is the next column, which continues the paragraph.
        apart = step > 1.4 * usual or -10 * usual < step < 0
        found.append(("\t".join(row) if is_row else "\n" + text if apart else text, size))
    return found


# Space between cells in heights of a line: more than between the words of a justified line.
CELL_GAP = 0.9
LONGEST_MARK = 3


def _page_blocks(
    lines: Sequence[str], size_of: dict[str, float], body: float, sizes: Sequence[int], page: int, joined: _Hyphens
) -> Iterator[Block]:
    """Lines joined to paragraphs, tables and headings. A paragraph ends with a short line that ends a sentence."""
    widths = sorted(len(line) for line in lines if size_of[line] <= HEADING_SIZE * body)
    full = widths[9 * len(widths) // 10] if widths else 0
    paragraph: list[str] = []
    heading: list[str] = []
    level = 0

    def flush() -> Iterator[Block]:
        nonlocal paragraph, heading, level
        if heading:
            yield Block(joined(heading), level, page)
        if paragraph and "\t" in paragraph[0]:
            paragraph = ["\n".join(paragraph).replace("\t", " | ")]
        if paragraph:
            yield Block(joined(paragraph), 0, page)
        paragraph, heading, level = [], [], 0

    for line in lines:
        size = size_of[line]
        if size > HEADING_SIZE * body and len(line) <= LONGEST_HEADING_LINE and "\t" not in line:
            own = min(6, 1 + sizes.index(round(size)))
            if paragraph or (heading and own != level):
                yield from flush()
            heading.append(line.removeprefix("\n"))
            level = own
            continue
        if heading or (paragraph and (line[0] == "\n" or ("\t" in line) != ("\t" in paragraph[0]))):
            yield from flush()
        paragraph.append(line.removeprefix("\n"))
        if len(line) < 0.75 * full and line[-1] in ".!?:;。！？" and "\t" not in line:
            yield from flush()
    yield from flush()


class _Hyphens:
    """Joins lines. pdfium marks every hyphen at a line's end by U+FFFE, that of a compound and that of a divided word:
    the words of the document decide which it is."""

    def __init__(self, pages: Sequence[Sequence[str]]) -> None:
        self._pages = pages

    @cached_property
    def _words(self) -> set[str]:
        return {word for lines in self._pages for line in lines for word in re.findall(r"[\w-]+", line.lower())}

    def __call__(self, lines: Sequence[str]) -> str:
        text = " ".join(lines)
        if "\ufffe" not in text:
            return text
        text = text.replace("\ufffe ", "\ufffe")
        return re.sub(r"(\w+)\ufffe(\w+)", self._joined, text).replace("\ufffe", "")

    def _joined(self, match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        whole = (first + second).lower()
        compound = f"{first}-{second}".lower() in self._words or {first.lower(), second.lower()} <= self._words
        return f"{first}-{second}" if compound and whole not in self._words else first + second


PDF = office_format("pdf", "PDF", "PDF, cut into passages", (".pdf",), pdf_blocks, 62)
