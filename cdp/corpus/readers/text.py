"""Plain text: one document per file, or one per passage between blank lines. The title is the file's name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdp.corpus.options import MAX_DOCUMENT_CHARACTERS, MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers.base import BadRow, Row, RowFormat
from cdp.corpus.sources import Source, numbered_lines, open_text

Line = tuple[int, str | None]
TOO_LONG_PASSAGE = f"the passage has more than {MAX_DOCUMENT_CHARACTERS:,} characters"
TOO_LONG_LINE = f"the line is longer than {MAX_LINE_CHARACTERS:,} characters"


def rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """The id is the file's name, with ``-1``, ``-2`` … for passages."""
    with open_text(source, options.encoding) as text:
        lines = numbered_lines(text)
        if options.split == "paragraphs":
            yield from as_rows(paragraphs(lines), source, source.stem)
        else:
            yield from whole(lines, source, source.stem)


def whole(lines: Iterable[Line], source: Source, title: str) -> Iterator[Row | BadRow]:
    """The whole file as one document, without blank lines around it; none for an empty file, refused if too long."""
    texts: list[str] = []
    size = 0
    for _, line in lines:
        size += MAX_DOCUMENT_CHARACTERS + 1 if line is None else len(line)
        if line is None or size > MAX_DOCUMENT_CHARACTERS:
            reason = f"the file has more than {MAX_DOCUMENT_CHARACTERS:,} characters"
            yield BadRow(None, "too long", f"{reason}; set split to paragraphs to make a document of each passage")
            return
        texts.append(line)
    if texts:
        yield Row(None, {"_id": source.name, "title": title, "text": tidy(texts)})


def paragraphs(lines: Iterable[Line]) -> Iterator[tuple[int, str] | BadRow]:
    """(first line, text) of each run of lines that are not blank; of one that is too long nothing is kept."""
    begins = size = 0
    texts: list[str] = []

    def passage() -> Iterator[tuple[int, str] | BadRow]:
        if size > MAX_DOCUMENT_CHARACTERS:
            yield BadRow(begins, "too long", TOO_LONG_PASSAGE)
        elif size:
            yield begins, tidy(texts)

    for number, line in lines:
        if line is None:
            yield BadRow(number, "too long", TOO_LONG_LINE)
        elif line.strip():
            begins = begins if size else number
            size += len(line)
            if size <= MAX_DOCUMENT_CHARACTERS:
                texts.append(line)
            else:
                texts.clear()
        else:
            yield from passage()
            texts, size = [], 0
    yield from passage()


def as_rows(passages: Iterable[tuple[int, str] | BadRow], source: Source, title: str) -> Iterator[Row | BadRow]:
    for n, passage in enumerate(passages, start=1):
        if isinstance(passage, BadRow):
            yield passage
        else:
            line, text = passage
            yield Row(line, {"_id": f"{source.name}-{n}", "title": title, "text": text})


def tidy(lines: list[str]) -> str:
    """Lines as one text: Windows line breaks become plain ones, blank lines and spaces around it go."""
    return "".join(lines).replace("\r\n", "\n").strip()


FORMAT = RowFormat(
    "text",
    "Plain text",
    "plain text, one document per file or passage",
    (".txt", ".text"),
    rows,
    own_fields=True,
    order=50,
)
