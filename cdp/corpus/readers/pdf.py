"""PDF by pdfium: lines joined to paragraphs, tables and headings; running headers, and pages that are recognised."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cdp.corpus import recognition
from cdp.corpus.checks import RefusedValueError
from cdp.corpus.readers import Block, Report
from cdp.corpus.readers.files import office_format
from cdp.corpus.readers.lines import HYPHEN, Joined, PageLine, unbroken
from cdp.corpus.readers.pdf_page import Page
from cdp.corpus.repeats import EDGE_LINES, running_lines, without_running

# A line in a font so much larger than the page's text is a heading.
HEADING_SIZE = 1.15
# Characters of a line in a larger font that can still be a heading.
LONGEST_HEADING_LINE = 150
PAGES_A_REPORT = 50
# An image with no more words printed on it than a date, a stamp and a page number is a scan.
MAX_STAMPED = 12
# Of the characters of a file, so many in its blocks need no count by words.
NEARLY_ALL = 0.995


def pdf_blocks(path: Path, passwords: Sequence[str], report: Report) -> Iterator[Block]:
    """Paragraphs, tables and headings of a PDF, without running headers and footers.

    Pages that are images are recognised where the machine can; else they are counted in ``report``, and a file of such
    pages is refused.
    """
    with _opened_pdf(path, passwords) as document:
        if document.get_formtype():
            document.init_forms()
        pages, whole, pictures = _read(document, report)

        running = running_lines([[line.text for line in lines] for lines in pages])
        kept = [without_running(lines, running) for lines in pages]
        scans = [n for n in pictures if sum(len(text.split()) for text, _ in kept[n]) <= MAX_STAMPED]
        removed: list[str] = []
        if report.keep_repeated:
            kept, running = list(pages), {}
        for lines, left in zip(pages, kept, strict=True) if running else ():
            removed += [line.text for line in lines if line not in left]
        _recognise(document, scans, kept, report)

    if report.scanned == len(pages) or not any(kept):
        raise RefusedValueError("scanned", f"its pages are images without text: {recognition.remedy() or UNREADABLE}")
    report.pages, report.running = len(pages), running
    if removed:
        report.remove("\n".join(removed), "running headers and footers")
    yield from _counted(_blocks_of(kept), whole, removed, report)


UNREADABLE = "OCR found no words in them"


def _read(document: Any, report: Report) -> tuple[list[list[PageLine]], list[str], list[int]]:
    """(lines of each page, all its text, indices of pages that are pictures)."""
    pages, whole, pictures = [], [], []
    for number, page in enumerate(document):
        if number % PAGES_A_REPORT == 0:
            report.progress(number, len(document))
        read = Page(page, document.formenv, report)
        pages.append(read.lines())
        whole.append(read.whole)
        if len(pages[-1]) <= 2 * EDGE_LINES and read.is_picture():  # more are not all running lines and stamps
            pictures.append(number)
        read.close()
    return pages, whole, pictures


def _recognise(document: Any, scans: list[int], kept: list[list[PageLine]], report: Report) -> None:
    """Put recognised lines in the place of scanned pages, and say which were recognised, and why others were not."""
    if not scans:
        return
    found: dict[int, list[str]] = {}
    why = recognition.remedy()
    if not why:
        text = " ".join(line.text for lines in kept for line in lines)
        languages, missing = recognition.languages_for(text, report.languages, recognition.packs())
        tried = scans[: recognition.MAX_PAGES]
        report.more_time(recognition.seconds(len(tried)))
        found = recognition.recognised(document, tried, languages)
        if found:
            said = f"were recognised as {languages}{f' ({missing})' if missing else ''}"
            report.notes.append(recognition.noted(len(kept), list(found), said))
        why = f"{recognition.MAX_PAGES} pages of a file are recognised" if len(tried) < len(scans) else UNREADABLE

    for number, lines in found.items():
        # An empty line stands between paragraphs.
        above = ["", *lines]
        kept[number] = [PageLine(line if above[i] or not i else f"\n{line}", 0) for i, line in enumerate(lines) if line]
    report.recognised = [number + 1 for number in found]
    unread = [number for number in scans if number not in found]
    report.scanned = len(unread)
    if unread:
        report.notes.append(recognition.noted(len(kept), unread, "have no text (scanned)") + f"; {why}")


def _counted(blocks: Iterator[Block], whole: list[str], removed: list[str], report: Report) -> Iterator[Block]:
    """Pass blocks on; where they have fewer characters than the pages, count both by words.

    Counting the words of each page would take a quarter of the time of reading it.
    """
    came = 0
    for block in blocks:
        came += len(block.text) - block.text.count(" ") - block.text.count("|")
        yield block
    text = "".join(whole)
    spaces, breaks, marks = text.count(" "), text.count("\n"), text.count("|") + text.count(HYPHEN)
    inside = len(text) - spaces - 2 * breaks - marks - len("".join(removed).replace(" ", ""))
    report.n_words = spaces + breaks + sum(map(bool, whole))
    if came < NEARLY_ALL * inside:
        lines = [[PageLine(line.strip(), 0) for line in text.split("\r\n") if line.strip()] for text in whole]
        unbroken(lines)
        texts = [[line.text for line in page] for page in lines]
        report.count("\n".join(map(Joined(texts), texts)))


def _blocks_of(pages: list[list[PageLine]]) -> Iterator[Block]:
    characters: Counter[float] = Counter()
    for line in itertools.chain.from_iterable(pages):
        characters[line.size] += len(line.text) if line.size else 0  # what was recognised has no font
    body = max(characters, key=lambda size: characters[size])
    large = {round(line.size) for lines in pages for line in lines if line.size > HEADING_SIZE * body}
    unbroken(pages)
    joined = Joined([[line.text for line in lines] for lines in pages])
    for number, lines in enumerate(pages, start=1):
        yield from _page_blocks(lines, body, sorted(large, reverse=True), number, joined)


def _opened_pdf(path: Path, passwords: Sequence[str]) -> Any:
    import pypdfium2

    for password in (None, *passwords):
        try:
            return pypdfium2.PdfDocument(path, password=password)
        except pypdfium2.PdfiumError as error:
            if "password" not in str(error).lower():
                raise RefusedValueError("unreadable file", "it is damaged, or no PDF") from None
    raise RefusedValueError("encrypted", "it is protected by a password")


def _page_blocks(
    lines: Sequence[PageLine], body: float, sizes: Sequence[int], page: int, joined: Joined
) -> Iterator[Block]:
    """Lines joined to paragraphs, tables and headings. A paragraph ends with a short line that ends a sentence."""
    widths = sorted(len(line.text) for line in lines if line.size <= HEADING_SIZE * body)
    full = widths[9 * len(widths) // 10] if widths else 0
    paragraph: list[str] = []
    heading: list[str] = []
    level = 0

    def flush() -> Iterator[Block]:
        nonlocal paragraph, heading, level
        if heading:
            yield Block(joined(heading), level, page)
        if paragraph and "\t" in paragraph[0]:
            yield Block("\n".join(map(joined, zip(paragraph))).replace("\t", " | "), 0, page, 1)
        elif paragraph:
            yield Block(joined(paragraph), 0, page)
        paragraph, heading, level = [], [], 0

    for line, size in lines:
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


PDF = office_format("pdf", "PDF", "PDF, cut into passages", (".pdf",), pdf_blocks, 62)
