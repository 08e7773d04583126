"""PDF (columns, hyphens, headings), Word, slides, web pages and EPUB, parsed in a process of its own.

A format is one function from a path to blocks (``cdp.corpus.passages.Block``) in reading order; it adds to ``report``
what the person should know of the file, and raises RefusedValueError for one that cannot be read. The libraries are
imported inside, so that only the reading process (``cdp.corpus.extraction``) loads them.
"""

from __future__ import annotations

import gc
import itertools
import json
import posixpath
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import unquote

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.extraction import blocks_of
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import READERS, Block, DocumentFormat, Report, parquet
from cdp.corpus.repeats import EDGE_LINES, running_lines, without_running
from cdp.corpus.sources import ROW_BYTES, Source

Parse = Callable[[Path, Sequence[str], Report], Iterator[Block]]

# A line in a font so much larger than the page's text is a heading.
HEADING_SIZE = 1.15
# Characters of a line in a larger font that can still be a heading.
LONGEST_HEADING_LINE = 150
MEMORY_BYTES = 4 << 30
# Characters of one file: more than any book; a small file that unpacks to more is a decompression bomb.
MOST_CHARACTERS = 100_000_000
BLOCKS_PER_LINE = 256
PAGES_A_REPORT = 50
# Of a page with fewer lines, the font of each is asked for.
LEAST_LINES = 8
OCR = "run OCR first (for example OCRmyPDF)"


@dataclass(frozen=True)
class OfficeFormat(DocumentFormat):
    """A format that the reading process parses by ``parse(path, passwords, report)``. ``zipped``: all are zips."""

    parse: Parse = lambda path, passwords, report: iter(())
    zipped: bool = False


def office_format(
    name: str, title: str, help: str, suffixes: tuple[str, ...], parse: Parse, order: int, zipped: bool = False
) -> OfficeFormat:
    """Declare a format whose files are parsed by a library in the reading process."""

    def blocks(source: Source, options: ReadOptions, report: Report) -> Iterator[Block]:
        with source.on_disk() as path:
            report.keep_repeated = options.keep_repeated
            yield from blocks_of(name, path, report)

    return OfficeFormat(name, title, help, suffixes, blocks, order=order, parse=parse, zipped=zipped)


def serve() -> None:
    """Answer requests until standard input ends."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    gc.set_threshold(50_000)  # a page is thousands of objects, none of them garbage: a twentieth of the time of a PDF
    # Libraries print warnings to standard output; answers have it for themselves.
    out, sys.stdout = sys.stdout, sys.stderr

    def say(**answer: Any) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["format"] == parquet.NAME:
                parquet.serve(say, out.buffer, **request)
            else:
                _answer(say, **request)
        except RefusedValueError as refused:
            say(refused=[refused.kind, refused.reason])
        except MemoryError:
            say(refused=["too long", "reading it takes more memory than a file may take"])
        except Exception as error:  # a library's fault with this file; the next file may be sound
            detail = " ".join(str(error).replace(request["path"], Path(request["path"]).name).split())[:200]
            say(refused=["unreadable file", f"it is damaged ({type(error).__name__}: {detail})"])


def _answer(say: Callable[..., None], format: str, path: str, passwords: Sequence[str], keep: bool) -> None:
    reader = READERS[format]
    assert isinstance(reader, OfficeFormat)
    report = Report(progress=lambda done, total: say(progress=[done, total]), keep_repeated=keep)
    size = 0
    if reader.zipped and not zipfile.is_zipfile(path):
        with open(path, "rb") as file:
            if file.read(4) == b"\xd0\xcf\x11\xe0":  # OLE: what encrypted and old Office files are
                raise RefusedValueError("encrypted", "it has a password or is older than 2007: save it again")
        raise RefusedValueError("unreadable file", f"it is damaged, or not {reader.title}")

    waiting: list[Block] = []
    for block in reader.parse(Path(path), passwords, report):
        size += len(block.text) + ROW_BYTES
        if size > MOST_CHARACTERS:
            reason = f"it holds more than {MOST_CHARACTERS:,} characters, {ROW_BYTES} counted for each paragraph"
            raise RefusedValueError("too long", reason)
        waiting.append(block)
        if len(waiting) == BLOCKS_PER_LINE:
            say(blocks=waiting)
            waiting = []
    say(blocks=waiting)
    say(report={name: value for name, value in vars(report).items() if name != "progress"})


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


def docx_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Paragraphs, headings and tables of a Word file in their order; headers, footers and comments are left out."""
    import docx
    from docx.table import Table

    document = docx.Document(str(path))
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            if text := _table_text([[cell.text for cell in row.cells] for row in item.rows]):
                yield Block(text)
            continue
        text = " ".join(item.text.split())
        # The name of a built-in style is English in every language of Word.
        style = (item.style.name or "").lower() if item.style is not None else ""
        if text:
            heading = re.fullmatch(r"heading ([1-9])", style)
            yield Block(text, 1 if style == "title" else min(6, int(heading[1])) if heading else 0)
            report.title = report.title or (text if style == "title" else "")
    report.title = report.title or " ".join((document.core_properties.title or "").split())


def pptx_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Titles, text, tables and speaker notes of each slide; ``page`` is the slide's number."""
    import pptx

    def texts(shapes: Any) -> Iterator[str]:
        for shape in shapes:
            if shape.shape_type == 6:  # a group
                yield from texts(shape.shapes)
            elif shape.has_text_frame and not (shape.is_placeholder and shape.placeholder_format.type in FOOTERS):
                yield "\n".join(p.text for p in shape.text_frame.paragraphs)
            elif getattr(shape, "has_table", False) and shape.has_table:
                yield _table_text([[cell.text for cell in row.cells] for row in shape.table.rows])

    for number, slide in enumerate(pptx.Presentation(str(path)).slides, start=1):
        title = slide.shapes.title
        if title is not None and title.text.strip():
            yield Block(" ".join(title.text.split()), 2, number)
        others = [shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id]
        for text in texts(others):
            if text.strip():
                yield Block(text.strip(), 0, number)
        speaker = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if speaker is not None and speaker.text.strip():
            yield Block(speaker.text.strip(), 0, number)


# Placeholders of date, footer and slide number (PP_PLACEHOLDER).
FOOTERS = (13, 15, 16)


def html_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Headings, paragraphs, lists and tables of a web page's main content by trafilatura, without navigation."""
    import trafilatura

    title, blocks = "", list[Block]()
    # Where it finds less, trafilatura gives all text of the page as one block, menus too.
    for least in (250, 100):
        trafilatura.settings.DEFAULT_CONFIG["DEFAULT"]["MIN_EXTRACTED_SIZE"] = str(least)
        found: Any = trafilatura.bare_extraction(
            path.read_bytes(), include_comments=False, favor_recall=True, with_metadata=True, prune_xpath=UNWANTED
        )
        elements = list(_page_elements(found.body)) if found is not None and found.body is not None else []
        if elements and (not blocks or sum(len(block.text) for block in elements) < 250):
            title, blocks = found.title or "", elements
        if len(blocks) > 1:
            break
    if not blocks:
        raise RefusedValueError("empty text", "no text was found in the page")
    # The only h1, else what the page declares, without the name of the site.
    tops = [block.text for block in blocks if block.level == 1]
    report.title = tops[0] if len(tops) == 1 else " ".join(title.split()).rstrip(" ¶")
    if report.title and not tops:
        yield Block(report.title, 1)
    yield from blocks


# Navigation, footers, a line with the copyright, and notices on cookies. The frame of a page and a chapter on cookies
# are called so too: nothing is removed that holds or lies in the main part, or is most of the text.
UNWANTED = [
    "//nav | //footer | //*[not(*) and starts-with(normalize-space(), '©') and string-length() < 150]",
    *(
        "//*[self::div or self::section or self::aside or self::dialog]"
        f"[contains(translate(concat(@id, ' ', @class), 'CDEGIKNOPRSTU', 'cdegiknoprstu'), '{word}')]"
        "[not(.//h1 or .//main or .//article or ancestor::main or ancestor::article or ancestor::*[@role='main'])]"
        "[2 * string-length() < string-length(//body)]"
        for word in ("cookie", "consent", "gdpr", "onetrust")
    ),
]


def _page_elements(body: Any) -> Iterator[Block]:
    for element in body:
        if element.tag == "table":
            rows = [["".join(cell.itertext()) for cell in row.iter("cell")] for row in element.iter("row")]
            text = _table_text(rows)
        elif element.tag == "list":
            text = "\n".join(" ".join("".join(item.itertext()).split()) for item in element.iter("item"))
        else:
            text = " ".join("".join(element.itertext()).split())
        level = int(element.get("rend", "h2")[1:]) if element.tag == "head" else 0
        if text := text.strip().rstrip(" ¶"):
            yield Block(text, level)


def epub_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """The chapters of an EPUB in the order of its spine."""
    from lxml import etree, html

    # Entities of a book's own XML are not resolved: they could name local files.
    parser = etree.XMLParser(resolve_entities=False, no_network=True)

    def xml(book: zipfile.ZipFile, name: str) -> Any:
        return etree.fromstring(book.read(name), parser)

    with zipfile.ZipFile(path) as book:
        package = xml(book, "META-INF/container.xml").find(".//{*}rootfile").get("full-path")
        opf = xml(book, package)
        items = {item.get("id"): item.get("href") for item in opf.iterfind(".//{*}manifest/{*}item")}
        title = opf.findtext(".//{http://purl.org/dc/elements/1.1/}title")
        if title and title.strip():
            yield Block(" ".join(title.split()), 1)
        for entry in opf.iterfind(".//{*}spine/{*}itemref"):
            name = posixpath.normpath(posixpath.join(posixpath.dirname(package), items[entry.get("idref")]))
            name = name if name in book.NameToInfo else unquote(name)
            chapter = html.fromstring(book.read(name), parser=html.HTMLParser(no_network=True))
            for element in chapter.iter("h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "td", "th", "pre", "blockquote"):
                if element.find(".//p") is not None:  # its paragraphs come by themselves
                    continue
                if text := " ".join(element.text_content().split()):
                    yield Block(text, min(6, int(element.tag[1]) + 1) if element.tag[0] == "h" else 0)


def _table_text(rows: Sequence[Sequence[str]]) -> str:
    """A line for each row, cells separated by bars; cells merged in Word repeat and are named once."""
    lines = []
    for row in rows:
        cells = [" ".join(cell.split()) for cell in row]
        cells = [cell for i, cell in enumerate(cells) if cell and (not i or cell != cells[i - 1])]
        if cells:
            lines.append(" | ".join(cells))
    return "\n".join(lines)


PDF = office_format("pdf", "PDF", "PDF, cut into passages", (".pdf",), pdf_blocks, 62)
DOCX = office_format("docx", "Word", "Word (.docx), cut into passages", (".docx",), docx_blocks, 63, zipped=True)
PPTX = office_format(
    "pptx", "Slides", "PowerPoint (.pptx), cut into passages", (".pptx",), pptx_blocks, 64, zipped=True
)
HTML = office_format("html", "Web page", "web pages, cut into passages", (".html", ".htm", ".xhtml"), html_blocks, 65)
EPUB = office_format("epub", "EPUB", "EPUB, cut into passages", (".epub",), epub_blocks, 66, zipped=True)
