"""Plain text and Markdown: paragraphs between blank lines, and the headings of Markdown. Other markup stays."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.passages import table
from cdp.corpus.readers import Block, DocumentFormat, Report
from cdp.corpus.sources import Source, numbered_lines, open_text

Line = tuple[int, str | None]
# Characters after which a paragraph is handed on, so that a text without blank lines is not held in memory.
LONGEST_PARAGRAPH = 100_000
HEAD_LINES = 200
LINES_COUNTED = 500

# A cell ends at a bar that no backslash stands before. The line below a table's titles is of dashes.
_CELL_END = re.compile(r"(?<!\\)\|")
_DELIMITERS = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
LONGEST_TITLE = 1_000
NO_TITLE = ("~", "null", "Null", "NULL")

_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class _Paragraph:
    """Lines that become one block, or of Markdown text and a table below it."""

    def __init__(self, markdown: bool = False) -> None:
        self.lines: list[str] = []
        self._size = 0
        self._markdown = markdown
        self._titles: list[str] = []  # of the table that goes on

    def add(self, number: int, line: str | None) -> Iterator[Block]:
        if line is None:
            raise RefusedValueError("too long", f"line {number:,} has more than {MAX_LINE_CHARACTERS:,} characters")
        self.lines.append(line)
        self._size += len(line)
        if self._size > LONGEST_PARAGRAPH:
            yield from self.flush(more=True)

    def flush(self, more: bool = False) -> Iterator[Block]:
        """The blocks of the lines. ``more``: they go on, for they are only too many to hold."""
        lines, titles = self.lines, self._titles
        self.lines, self._size, self._titles = [], 0, []
        at = 0 if titles else _table_at(lines) if self._markdown else len(lines)
        if text := "".join(lines[:at]).replace("\r\n", "\n").strip():
            yield Block(text)
        if at == len(lines):
            return

        if not titles:
            titles, at = _cells(lines[at]), at + 2
        yield from table([titles, *map(_cells, lines[at:])])
        self._titles = titles if more else []


def _table_at(lines: list[str]) -> int:
    """Where a table begins, with the line of its titles; the number of lines where none does, or in code."""
    for i, (above, line) in enumerate(itertools.pairwise(lines)):
        if _FENCE.match(above):
            break
        dashes = "|" in above and "-" in line and len(line) <= LONGEST_TITLE and _DELIMITERS.match(line)
        if dashes and len(_cells(above)) == len(_cells(line)):
            return i
    return len(lines)


def _cells(line: str) -> list[str]:
    bare = line.strip()
    cells = _CELL_END.split(bare.removeprefix("|"))
    if bare.endswith("|") and len(cells) > 1 and not cells[-1]:
        cells.pop()
    return [cell.replace("\\|", "|").strip() for cell in cells]


def text_blocks(source: Source, options: ReadOptions, report: Report) -> Iterator[Block]:
    """A block for each run of lines that are not blank.

    What stands between spaces is counted, and words one by one, which take four times as long, where some are missing.
    """
    came = 0
    with open_text(source, options.encoding) as text:
        for block in _paragraphs(numbered_lines(text), report):
            came += len(block.text.split())
            yield block
    if came < report.n_words:
        with open_text(source, options.encoding) as text:
            deque(_counted(numbered_lines(text), report), maxlen=0)


def _paragraphs(lines: Iterator[Line], report: Report) -> Iterator[Block]:
    paragraph = _Paragraph()
    for number, line in lines:
        n = len(line.split()) if line else 0
        report.n_words += n
        if n or line is None:
            yield from paragraph.add(number, line)
        else:
            yield from paragraph.flush()
    yield from paragraph.flush()


def markdown_blocks(source: Source, options: ReadOptions, report: Report) -> Iterator[Block]:
    """Headings, paragraphs and tables. Of a YAML block at the top the title is kept; fenced code stays in one block."""
    paragraph = _Paragraph(markdown=True)
    fence = ""
    with open_text(source, options.encoding) as text:
        report.title, lines = after_front_matter(_counted(numbered_lines(text), report), report)
        for number, line in lines:
            bare = (line or "").rstrip("\r\n")
            marks = _FENCE.match(bare)

            if fence:
                if marks and marks[1].startswith(fence) and not bare.strip(" `~"):
                    fence = ""
            elif marks:
                fence = marks[1]
            elif heading := heading_of(bare):
                yield from paragraph.flush()
                yield Block(heading[1], heading[0])
                continue
            elif (underline := _UNDERLINE.match(bare)) and _can_be_title(paragraph.lines):
                yield Block(paragraph.lines.pop().strip(), 1 if "=" in underline[1] else 2)
                continue
            elif line is not None and not bare.strip():
                yield from paragraph.flush()
                continue

            yield from paragraph.add(number, line)

    yield from paragraph.flush()


def _counted(lines: Iterator[Line], report: Report) -> Iterator[Line]:
    """Pass lines on, their words counted: of many lines at once, which takes two thirds of the time."""
    while part := list(itertools.islice(lines, LINES_COUNTED)):
        report.count("".join(line or "" for _, line in part))
        yield from part


def after_front_matter(lines: Iterator[Line], report: Report) -> tuple[str, Iterator[Line]]:
    """(title, lines without a leading ``---`` block that is closed within 200 lines)."""
    first = next(lines, (0, ""))
    if (first[1] or "").rstrip() != "---":
        return "", itertools.chain([first], lines)
    head = list(itertools.islice(lines, HEAD_LINES))
    end = next((i for i, (_, line) in enumerate(head, 1) if (line or "").rstrip() in ("---", "...")), 0)
    declared = [line or "" for _, line in head[:end]]
    title = _declared_title(declared)
    report.remove("".join(declared), "front matter")
    return title, itertools.chain(head[end:] if end else [first, *head], lines)


def _declared_title(lines: list[str]) -> str:
    """The title among the lines of front matter, which need not be valid YAML as a whole."""
    start = next((i for i, line in enumerate(lines) if line.startswith("title:")), len(lines))
    rest = itertools.takewhile(lambda line: line[:1] in (" ", "\t"), lines[start + 1 :])
    entry = "".join([*lines[start : start + 1], *rest])
    if not entry or len(entry) > LONGEST_TITLE:
        return ""
    import yaml

    title = entry.removeprefix("title:")  # with a colon in it and no quotation marks, or no space before it
    with suppress(yaml.YAMLError, RecursionError):
        # Texts only: as values, 2024-01-01 would be a date, 2024-02-30 an error and 1:30 the number 90.
        declared = yaml.BaseLoader(entry).get_single_data()
        title = declared.get("title", title) if isinstance(declared, dict) else title

    return " ".join(title.split()) if isinstance(title, str) and title not in NO_TITLE else ""


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


def _can_be_title(lines: list[str]) -> bool:
    """Return True if the line before an underline is a one-line paragraph; else the underline is a rule or a list."""
    return len(lines) == 1 and not lines[0].lstrip().startswith(("-", "*", "+", ">", "|", "#"))


TEXT = DocumentFormat("text", "Plain text", "plain text, cut into passages", (".txt", ".text"), text_blocks, order=50)
MARKDOWN = DocumentFormat(
    "markdown", "Markdown", "Markdown, cut into passages at headings", (".md", ".markdown"), markdown_blocks, order=60
)
