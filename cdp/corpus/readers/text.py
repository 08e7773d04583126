"""Plain text and Markdown: paragraphs between blank lines, and the headings of Markdown. Other markup stays."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import Block, DocumentFormat, Report
from cdp.corpus.sources import Source, numbered_lines, open_text

Line = tuple[int, str | None]
# Characters after which a paragraph is handed on, so that a text without blank lines is not held in memory.
LONGEST_PARAGRAPH = 100_000
HEAD_LINES = 200

_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class _Paragraph:
    """Lines that become one block."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._size = 0

    def add(self, number: int, line: str | None) -> Iterator[Block]:
        if line is None:
            raise RefusedValueError("too long", f"line {number:,} has more than {MAX_LINE_CHARACTERS:,} characters")
        self.lines.append(line)
        self._size += len(line)
        if self._size > LONGEST_PARAGRAPH:
            yield from self.flush()

    def flush(self) -> Iterator[Block]:
        text = "".join(self.lines).replace("\r\n", "\n").strip()
        self.lines, self._size = [], 0
        if text:
            yield Block(text)


def text_blocks(source: Source, options: ReadOptions, report: Report) -> Iterator[Block]:
    """A block for each run of lines that are not blank."""
    paragraph = _Paragraph()
    with open_text(source, options.encoding) as text:
        for number, line in numbered_lines(text):
            if line is None or line.strip():
                yield from paragraph.add(number, line)
            else:
                yield from paragraph.flush()
    yield from paragraph.flush()


def markdown_blocks(source: Source, options: ReadOptions, report: Report) -> Iterator[Block]:
    """Headings and paragraphs. A YAML block at the top is not part of the text; fenced code stays in one block."""
    paragraph = _Paragraph()
    fence = ""
    with open_text(source, options.encoding) as text:
        for number, line in after_front_matter(numbered_lines(text)):
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


def after_front_matter(lines: Iterator[Line]) -> Iterator[Line]:
    """The lines without a leading ``---`` block that is closed within 200 lines."""
    first = next(lines, (0, ""))
    if (first[1] or "").rstrip() != "---":
        return itertools.chain([first], lines)
    head = list(itertools.islice(lines, HEAD_LINES))
    end = next((i for i, (_, line) in enumerate(head, 1) if (line or "").rstrip() in ("---", "...")), 0)
    return itertools.chain(head[end:] if end else [first, *head], lines)


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
