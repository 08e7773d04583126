"""Cut long documents into passages at headings, paragraphs and sentences.

A document is a list of blocks in reading order. Passages never cross a heading; within a section they hold whole
sentences, and the last sentences of one return at the beginning of the next, so that no answer is cut in two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

# Part of a passage that the next one repeats.
OVERLAP = 0.2
# A section's rest below this part of a passage joins the passage before.
LEAST = 0.25
# Characters of a heading in a title: a "heading" that is a whole paragraph must not become one.
LONGEST_HEADING = 200

_SENTENCE = re.compile(r"(?<=[.!?…])[\"”»')\]]*\s+|(?<=[。！？])")
# Scripts without spaces between words: two characters count as one word (Chinese words have 1.5 to 2).
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


class Block(NamedTuple):
    """A paragraph, list, table or heading. ``level`` is 1 to 6 for a heading, else 0; ``page`` counts from 1, 0 where
    the format has no pages."""

    text: str
    level: int = 0
    page: int = 0


# The end of a passage's id: its page, where the format has pages, and its number in the file.
_PLACE = re.compile(r"(?P<file>.+)#(?:p\d+-)?(?P<number>\d+)", re.DOTALL)


def neighbours(ids: Iterable[str]) -> dict[str, list[str]]:
    """{passage: the ones right before and after it in its file, which share sentences with it}, all by id."""
    placed = [(match["file"], int(match["number"]), match[0]) for match in map(_PLACE.fullmatch, ids) if match]
    by_place = {(file, number): name for file, number, name in placed}
    beside = ((name, [by_place.get((file, n)) for n in (at - 1, at + 1)]) for file, at, name in placed)
    return {name: found for name, near in beside if (found := [other for other in near if other is not None])}


@dataclass(frozen=True, slots=True)
class Passage:
    """``section`` is the path of headings above it; ``page`` where it begins."""

    text: str
    section: tuple[str, ...] = ()
    page: int = 0


def word_count(text: str) -> int:
    """Words of a text: runs between spaces, and in scripts without spaces every two characters."""
    unspaced = len(_UNSPACED.findall(text))
    return len(_UNSPACED.sub(" ", text).split()) + (unspaced + 1) // 2 if unspaced else len(text.split())


def cut(blocks: Sequence[Block], words: int) -> Iterator[Passage]:
    """The passages of a document, of about ``words`` words each; 0 gives the whole document as one."""
    if not words:
        text = "\n\n".join(block.text for block in blocks)
        if text:
            yield Passage(text, (), blocks[0].page)
        return
    above: list[tuple[int, str]] = []
    section: list[Block] = []
    for block in blocks:
        if not block.level:
            section.append(block)
            continue
        yield from _of_section(section, tuple(text for _, text in above), words)
        section = []
        above = [(level, text) for level, text in above if level < block.level]
        above.append((block.level, block.text[:LONGEST_HEADING]))
    yield from _of_section(section, tuple(text for _, text in above), words)


class _Sentence(NamedTuple):
    text: str
    words: int
    page: int
    # What stands between it and the sentence before: a space, or a blank line where a paragraph begins.
    gap: str


def _of_section(blocks: Sequence[Block], section: tuple[str, ...], words: int) -> Iterator[Passage]:
    sentences = [sentence for block in blocks for sentence in _sentences(block, words)]
    passages: list[list[_Sentence]] = []
    current: list[_Sentence] = []
    size = fresh = 0
    for sentence in sentences:
        # A paragraph that begins past three quarters of a passage begins the next one.
        full = size + sentence.words > words or (sentence.gap == "\n\n" and size > 0.75 * words)
        if current and fresh and full:
            passages.append(current)
            current, size, fresh = _repeated(current, words), 0, 0
            size = sum(s.words for s in current)
        current.append(sentence)
        size += sentence.words
        fresh += sentence.words
    if current and passages and fresh < LEAST * words:
        passages[-1] += current[len(current) - _fresh_count(current, fresh) :]
    elif current:
        passages.append(current)
    for passage in passages:
        text = passage[0].text + "".join(s.gap + s.text for s in passage[1:])
        yield Passage(text, section, passage[0].page)


def _fresh_count(current: Sequence[_Sentence], fresh: int) -> int:
    """How many of the last sentences make up ``fresh`` words."""
    n = 0
    while fresh > 0:
        n += 1
        fresh -= current[-n].words
    return n


def _repeated(passage: Sequence[_Sentence], words: int) -> list[_Sentence]:
    """The last sentences of a passage that the next one begins with."""
    kept: list[_Sentence] = []
    size = 0
    for sentence in reversed(passage[1:]):
        if size + sentence.words > OVERLAP * words:
            break
        kept.insert(0, sentence)
        size += sentence.words
    return kept


def _sentences(block: Block, words: int) -> Iterator[_Sentence]:
    gap = "\n\n"
    for text in _SENTENCE.split(block.text):
        text = text.strip()
        n = word_count(text)
        if n <= words:
            if text:
                yield _Sentence(text, n, block.page, gap)
                gap = " "
            continue
        # A table, or text without full stops: cut between words, or characters where there are no spaces.
        parts = text.split(" ") if " " in text else [text[i : i + words] for i in range(0, len(text), words)]
        step = max(1, words * len(parts) // n)
        for i in range(0, len(parts), step):
            part = (" " if " " in text else "").join(parts[i : i + step])
            yield _Sentence(part, word_count(part), block.page, gap)
            gap = " "


# Lines at the top and bottom of a page that are compared.
EDGE_LINES = 3
# A line on so many pages is a running header or footer.
RUNNING_SHARE = 0.5
LEAST_PAGES = 3
_DIGITS = re.compile(r"\d+")


def running_lines(pages: Sequence[Sequence[str]]) -> set[str]:
    """The first and last lines that return on most pages, with digits as #: headers, footers, page numbers.

    Even and odd pages may differ, so half of the pages suffices.
    """
    if len(pages) < LEAST_PAGES:
        return set()
    counts = Counter(key for lines in pages for key in {line_key(line) for line in _edges(lines)} if key)
    return {key for key, n in counts.items() if n >= max(LEAST_PAGES, RUNNING_SHARE * 0.9 * len(pages))}


def without_running(lines: Sequence[str], running: set[str]) -> list[str]:
    """The lines of a page without running headers and footers."""
    last = len(lines) - EDGE_LINES
    return [line for i, line in enumerate(lines) if not ((i < EDGE_LINES or i >= last) and line_key(line) in running)]


def line_key(line: str) -> str:
    """A line as it is compared: its words, with every number as #."""
    return _DIGITS.sub("#", " ".join(line.lower().split()))


def _edges(lines: Sequence[str]) -> list[str]:
    return [*lines[:EDGE_LINES], *lines[max(EDGE_LINES, len(lines) - EDGE_LINES) :]]
