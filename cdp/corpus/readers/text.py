"""Plain text and Markdown: one document per file, per passage between blank lines, or per section of a heading.

The markup itself is kept as it is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from cdp.corpus.options import MAX_DOCUMENT_CHARACTERS, MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import BadRow, Row, RowFormat
from cdp.corpus.sources import Source, numbered_lines, open_text

Line = tuple[int, str | None]
TOO_LONG_PASSAGE = f"the passage has more than {MAX_DOCUMENT_CHARACTERS:,} characters"
TOO_LONG_LINE = f"the line is longer than {MAX_LINE_CHARACTERS:,} characters"


def text_rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
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


TEXT = RowFormat(
    "text",
    "Plain text",
    "plain text, one document per file or passage",
    (".txt", ".text"),
    text_rows,
    own_fields=True,
    order=50,
)


_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEAD_LINES = 200
# Characters of each heading above a section that its title repeats: a title must not grow with all sections below.
LONGEST_ABOVE = 200


def markdown_rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """The title is the file's first top heading, else its name; a section's is the path of headings above it.

    A YAML block at the top of the file is not part of the text.
    """
    with open_text(source, options.encoding) as text:
        lines = after_front_matter(numbered_lines(text))
        head = list(itertools.islice(lines, HEAD_LINES))
        lines = itertools.chain(head, lines)
        if options.split == "headings":
            yield from _sections(lines, source)
            return
        title = next((s.title for s in sections(head) if s.level == 1), source.stem)
        if options.split == "paragraphs":
            yield from as_rows(paragraphs(lines), source, title)
        else:
            yield from whole(lines, source, title)


def after_front_matter(lines: Iterator[Line]) -> Iterator[Line]:
    """The lines without a leading ``---`` block that is closed within 200 lines."""
    first = next(lines, None)
    if first is None:
        return iter(())
    if first[1] is None or first[1].rstrip() != "---":
        return itertools.chain([first], lines)
    seen = [first]
    for number, line in itertools.islice(lines, HEAD_LINES):
        seen.append((number, line))
        if line is not None and line.rstrip() in ("---", "..."):
            return lines
    return itertools.chain(seen, lines)


class Section:
    """A heading (level 1 to 6; 0 for what stands before the first) and the lines below it, as far as they can be kept.

    ``size`` counts the characters of all of them.
    """

    def __init__(self, line: int, level: int, title: str) -> None:
        self.line, self.level, self.title = line, level, title
        self.lines: list[str] = []
        self.size = 0

    def add(self, line: str) -> None:
        self.size += len(line)
        if self.size <= MAX_DOCUMENT_CHARACTERS:
            self.lines.append(line)

    @property
    def too_long(self) -> bool:
        return self.size > MAX_DOCUMENT_CHARACTERS


def heading_of(line: str) -> tuple[int, str] | None:
    """(level, title) of a heading with number signs, None for any other line. One pass over it, which no pattern is."""
    unindented = line.lstrip(" ")
    text = unindented.lstrip("#")
    level = len(unindented) - len(text)
    if len(line) - len(unindented) > 3 or not 1 <= level <= 6 or (text and text[0] not in " \t"):
        return None
    title = text.strip(" \t")
    open_end = title.rstrip("#")  # number signs at the end close the heading if a space stands before them
    if open_end != title and (not open_end or open_end[-1] in " \t"):
        title = open_end.rstrip(" \t")
    return level, title.strip()


def sections(lines: Iterable[Line]) -> Iterator[Section]:
    """Sections in order, the first with level 0. Headings inside fenced code are none."""
    current = Section(1, 0, "")
    fence = ""
    for number, line in lines:
        if line is None:
            continue
        bare = line.rstrip("\r\n")
        opening = _FENCE.match(bare)
        if fence:
            if opening and opening[1].startswith(fence) and not bare.strip(" `~"):
                fence = ""
        elif opening:
            fence = opening[1]
        elif heading := heading_of(bare):
            yield current
            current = Section(number, *heading)
            continue
        elif (underline := _UNDERLINE.match(bare)) and _can_be_title(current.lines):
            title = current.lines.pop().strip()
            yield current
            current = Section(number - 1, 1 if "=" in underline[1] else 2, title)
            continue
        current.add(line)
    yield current


def _can_be_title(lines: list[str]) -> bool:
    """Return True if the line before an underline is a one-line paragraph; else the underline is a rule or a list."""
    if not lines or not lines[-1].strip() or lines[-1].lstrip().startswith(("-", "*", "+", ">", "|", "#")):
        return False
    return len(lines) == 1 or not lines[-2].strip()


def _sections(lines: Iterable[Line], source: Source) -> Iterator[Row | BadRow]:
    """A row per section that has text of its own; headings right above other headings live on in their titles."""
    above: list[tuple[int, str]] = []
    n = 0
    too_long: list[int] = []

    def watched() -> Iterator[Line]:
        for number, line in lines:
            if line is None:
                too_long.append(number)
            yield number, line

    for section in sections(watched()):
        above = [(level, title) for level, title in above if level < section.level]
        if section.level:
            above.append((section.level, section.title))
        if section.too_long:
            yield BadRow(section.line, "too long", TOO_LONG_PASSAGE)
        elif text := tidy(section.lines):
            n += 1
            titles = [title[:LONGEST_ABOVE] for _, title in above[:-1] if title]
            titles += [title for _, title in above[-1:] if title]
            title = " › ".join(titles) or source.stem
            yield Row(section.line, {"_id": f"{source.name}-{n}", "title": title, "text": text})
        while too_long:
            yield BadRow(too_long.pop(0), "too long", TOO_LONG_LINE)


MARKDOWN = RowFormat(
    "markdown",
    "Markdown",
    "Markdown, one document per file or section",
    (".md", ".markdown"),
    markdown_rows,
    own_fields=True,
    order=60,
)
