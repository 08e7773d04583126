"""Cut long documents into passages at headings, paragraphs and sentences: overlap, neighbours.

A document is a list of blocks in reading order. Passages never cross a heading; within a section they hold whole
sentences, and the last sentences of one return at the beginning of the next, so that no answer is cut in two.
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
    the format has no pages."""

    text: str
    level: int = 0
    page: int = 0


def neighbours(ids: Iterable[str]) -> dict[str, list[str]]:
    """{passage: the ones right before and after it in its file, which share sentences with it}, all by id."""
    placed = [(match["file"], int(match["number"]), match[0]) for match in map(PASSAGE_ID.fullmatch, ids) if match]
    by_place = {(file, number): name for file, number, name in placed}
    beside = ((name, [by_place.get((file, n)) for n in (at - 1, at + 1)]) for file, at, name in placed)
    return {name: found for name, near in beside if (found := [other for other in near if other is not None])}


@dataclass(frozen=True, slots=True)
class Passage:
    """``section`` is the path of headings above it; ``page`` where it begins."""

    text: str
    section: tuple[str, ...] = ()
    page: int = 0

    @property
    def words(self) -> int:
        return count_words(self.text)


def cut(blocks: Iterable[Block], words: int) -> Iterator[Passage]:
    """The passages of a document, of about ``words`` words each; a document that is hardly longer stays whole.

    0 gives any document whole. Memory holds two passages.
    """
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
        yield Passage("\n\n".join(block.text for block in head if block.text), (), head[0].page)
        return
    by_section = itertools.groupby(_placed(itertools.chain(head, blocks)), key=lambda placed: placed[:2])
    for (_, section), group in by_section:
        yield from _of_section((block for _, _, block in group), section, words)


def _placed(blocks: Iterable[Block]) -> Iterator[tuple[int, tuple[str, ...], Block]]:
    """Each block that is no heading, with the number of its section and the path of headings above it."""
    above: list[tuple[int, str]] = []
    number = 0
    for block in blocks:
        if block.level:
            number += 1
            above = [(level, text) for level, text in above if level < block.level]
            above.append((block.level, block.text[:LONGEST_HEADING]))
        else:
            yield number, tuple(text for _, text in above if text), block


class _Sentence(NamedTuple):
    text: str
    words: int
    page: int
    # The space before it: as in the text, or a blank line where a paragraph begins.
    gap: str
    opens: bool


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
        current.append(sentence)
        size += sentence.words
    if before and sum(s.words for s in current[repeated:]) < LEAST * words:
        yield _joined(before + current[repeated:], section)
        return
    for passage in filter(None, (before, current)):
        yield _joined(passage, section)


def _joined(sentences: Sequence[_Sentence], section: tuple[str, ...]) -> Passage:
    text = sentences[0].text + "".join(s.gap + s.text for s in sentences[1:])
    return Passage(text, section, sentences[0].page)


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
    at, gap, opens = 0, "\n\n", True
    for match in itertools.chain(_SENTENCE.finditer(block.text), [None]):
        text = block.text[at : match.end(1) if match and match[2] else match.start() if match else None]
        if text.strip():
            for piece, space in _pieces(text, words):
                yield _Sentence(piece, count_words(piece), block.page, gap, opens)
                gap, opens = space, False
            gap = (match[2] or "") if match else ""
        at = match.end() if match else at


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
