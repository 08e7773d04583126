"""Cut long documents into passages at headings, paragraphs and sentences: overlap, neighbours.

A document is a list of blocks in reading order. Passages never cross a heading; within a section they hold whole
sentences, and the last sentences of one return at the beginning of the next, so that no answer is cut in two. A table
is cut between its rows, and each piece begins with its header.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cdp.base.records import PASSAGE_ID
from cdp.corpus.documents import count_words
from cdp.corpus.options import MAX_DOCUMENT_CHARACTERS

# Part of a passage that the next one repeats.
OVERLAP = 0.2
# A section's rest below this part of a passage joins the passage before.
LEAST = 0.25
# Characters of a heading in a title: a "heading" that is a whole paragraph must not become one.
LONGEST_HEADING = 200

# Where a sentence ends: after its closing quotation marks and brackets, before the space.
_SENTENCE = re.compile(r"(?<=[.!?…।؟۔።])([\"”»')\]]*)(\s+)|(?<=[。！？])(?![」』”）])|(?<=[。！？][」』”）])")


class Block(NamedTuple):
    """A paragraph, list, table or heading. ``level`` is 1 to 6 for a heading, else 0; ``page`` counts from 1, 0 where
    the format has no pages. Of a table, whose rows are lines, ``header`` is the number of lines above the first row of
    values, 0 where there are none; any other block has -1."""

    text: str
    level: int = 0
    page: int = 0
    header: int = -1


def table(rows: Iterable[Sequence[str]], page: int = 0, header: int = 1) -> Iterator[Block]:
    """The block of a table: a line for each row, cells separated by bars. Empty cells keep the others in their columns;
    rows and columns without any text are left out, and one column is prose: layout tables are these."""
    lines = [[" ".join(cell.split()) for cell in row] for row in rows]
    filled = [row for row in lines if any(row)]
    header -= sum(not any(row) for row in lines[:header])

    full = [i for i in range(max(map(len, filled), default=0)) if any(row[i] for row in filled if i < len(row))]
    if len(full) < 2:
        yield from (Block(cell, 0, page) for row in filled for cell in row if cell)
        return

    # A first empty cell shows as a bar at the beginning of its line; those at its end say nothing.
    text = []
    for row in filled:
        last = max(i for i, cell in enumerate(row) if cell)
        text.append(" | ".join(row[i] for i in full if i <= last).strip())
    yield Block("\n".join(text), 0, page, max(0, header))


def in_cell(blocks: Iterable[Block]) -> str:
    """The text of the blocks of a cell. A table in it reads as a list: cells divided by commas, rows by semicolons."""
    texts = []
    for text, _, _, header in blocks:
        texts.append(text if header < 0 else text.replace(" | ", ", ").replace("\n", "; "))
    return "\n".join(texts)


def neighbours(ids: Iterable[str]) -> dict[str, list[str]]:
    """{passage: the ones right before and after it in its file, which share sentences with it}, all by id."""
    placed = [(match["file"], int(match["number"]), match[0]) for match in map(PASSAGE_ID.fullmatch, ids) if match]
    by_place = {(file, number): name for file, number, name in placed}

    beside: dict[str, list[str]] = {}
    for file, at, name in placed:
        for near in (at - 1, at + 1):
            if other := by_place.get((file, near)):
                beside.setdefault(name, []).append(other)
    return beside


@dataclass(frozen=True, slots=True)
class Passage:
    """``section`` is the path of headings above it; ``page`` where it begins and ``last`` where it ends."""

    text: str
    section: tuple[str, ...] = ()
    page: int = 0
    last: int = 0

    @property
    def words(self) -> int:
        return count_words(self.text)

    @property
    def pages(self) -> str:
        """``3``, ``3–4``, or "" where the format has no pages."""
        return f"{self.page}–{self.last}" if self.last > self.page else str(self.page or "")


def cut(blocks: Iterable[Block], words: int, apart: bool = False, title: str = "") -> Iterator[Passage]:
    """The passages of a document, of about ``words`` words each; a document that is hardly longer stays whole.

    0 gives any document whole. ``apart``: a page is cut for itself, as a slide. A heading that is the ``title`` is told
    by every passage. Memory holds two passages.
    """
    if apart and words:
        for _, page in itertools.groupby(blocks, key=lambda block: block.page):
            yield from _of_sections(page, words, title)
        return

    blocks = iter(blocks)
    head: list[Block] = []
    size = characters = 0
    for block in blocks:
        head.append(block)
        size += count_words(block.text)
        characters += len(block.text)
        if characters > MAX_DOCUMENT_CHARACTERS or (words and size > (1 + LEAST) * words):
            break
    if head and (not words or size <= (1 + LEAST) * words):
        text = "\n\n".join(block.text for block in head if block.text)
        yield Passage(text, (), head[0].page, head[-1].page)
        return
    yield from _of_sections(itertools.chain(head, blocks), words, title)


def _of_sections(blocks: Iterable[Block], words: int, title: str) -> Iterator[Passage]:
    for (_, section), group in itertools.groupby(_placed(blocks, title), key=lambda placed: placed[:2]):
        yield from _of_section((block for _, _, block in group), section, words)


def _placed(blocks: Iterable[Block], title: str) -> Iterator[tuple[int, tuple[str, ...], Block]]:
    """Each block that is no heading, with the number of its section and the path of headings above it.

    A heading is text, too, where nothing else would tell it: nothing stands under it, or it is too long for a path.
    """
    above: list[Block] = []
    used = number = 0

    def path(headings: Sequence[Block]) -> tuple[str, ...]:
        return tuple(block.text[:LONGEST_HEADING] for block in headings if block.text)

    for block in itertools.chain(blocks, [Block("", 1)]):
        if not block.level:
            used = len(above)
            yield number, path(above), block
            continue

        kept = sum(heading.level < block.level for heading in above)
        if len(above) > max(kept, used) and above[-1].text != title:  # nothing was under it
            yield number, path(above[:-1]), above[-1]._replace(level=0)
        above, used = above[:kept], min(used, kept)
        number += 1
        above.append(block)
        if len(block.text) > LONGEST_HEADING:
            used = len(above)
            yield number, path(above), block._replace(level=0)


class _Sentence(NamedTuple):
    text: str
    words: int
    page: int
    # The space before it: as in the text, or a blank line where a paragraph begins.
    gap: str
    opens: bool
    # Of a row of a table, the lines above its first row, None of any other text.
    header: str | None = None


def _of_section(blocks: Iterable[Block], section: tuple[str, ...], words: int) -> Iterator[Passage]:
    # The passage before waits for a short rest of the section.
    before: list[_Sentence] = []
    current: list[_Sentence] = []
    size = repeated = 0
    for sentence in itertools.chain.from_iterable(_sentences(block, words) for block in blocks):
        # A paragraph that begins past three quarters of a passage begins the next one.
        full = size + sentence.words > words or (sentence.opens and size > 0.75 * words)
        if full and len(current) > repeated:
            if before:
                yield _joined(before, section)
            before, current = current, _repeated(current, words)
            size, repeated = sum(s.words for s in current), len(current)

        if not current:
            size += count_words(sentence.header or "")

        current.append(sentence)
        size += sentence.words

    if before and sum(s.words for s in current[repeated:]) < LEAST * words:
        yield _joined(before + current[repeated:], section)
        return

    for passage in filter(None, (before, current)):
        yield _joined(passage, section)


def _joined(sentences: Sequence[_Sentence], section: tuple[str, ...]) -> Passage:
    first = sentences[0]
    header = f"{first.header}\n" if first.header else ""
    text = header + first.text + "".join(s.gap + s.text for s in sentences[1:])
    return Passage(text, section, first.page, max(s.page for s in sentences))


def _repeated(passage: Sequence[_Sentence], words: int) -> list[_Sentence]:
    """The last sentences of a passage that the next one begins with."""
    kept: list[_Sentence] = []
    size = 0
    for sentence in reversed(passage[1:]):
        # A row of a table says nothing about the next.
        if sentence.header is not None or size + sentence.words > OVERLAP * words:
            break
        kept.insert(0, sentence)
        size += sentence.words
    return kept


def _sentences(block: Block, words: int) -> Iterator[_Sentence]:
    if block.header >= 0:
        yield from _rows(block, words)
        return
    at, gap, opens = 0, "\n\n", True
    for match in itertools.chain(_SENTENCE.finditer(block.text), [None]):
        text = block.text[at : match.end(1) if match and match[2] else match.start() if match else None]
        if text.strip():
            for piece, space in _pieces(text, words):
                yield _Sentence(piece, count_words(piece), block.page, gap, opens)
                gap, opens = space, False
            gap = (match[2] or "") if match else ""
        at = match.end() if match else at


def _rows(block: Block, words: int) -> Iterator[_Sentence]:
    """The rows of a table. The first has the header above it; a passage that begins at another repeats the header."""
    lines = block.text.split("\n")
    header = "\n".join(lines[: block.header])
    size = count_words(header)
    if size > words / 2 or len(lines) == block.header:
        header, size = "", 0
    rows = lines[block.header :] if header else lines

    above, gap = (f"{header}\n" if header else ""), "\n\n"
    for row in rows:
        for piece, space in _pieces(row, words - size):
            yield _Sentence(above + piece, count_words(above + piece), block.page, gap, False, "" if above else header)
            above, gap = "", space
        gap = "\n"


def _pieces(text: str, words: int) -> Iterator[tuple[str, str]]:
    """(text, space behind it) of what is too long for a passage: tables, and text without full stops."""
    n = count_words(text)
    if n <= words:
        yield text, ""
        return
    # Between words, or characters where there are hardly any spaces.
    parts = re.split(r"(\s+)", text) if 2 * len(text.split()) > n else list(text)
    step = max(2, words * len(parts) // n // 2 * 2)
    for i in range(0, len(parts), step):
        chunk = parts[i : i + step]
        space = chunk.pop() if len(chunk) > 1 and chunk[-1].isspace() else ""
        yield "".join(chunk), space
