"""Text that returns: running headers and footers, lines in most files, near-duplicate passages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from zlib import crc32

from cdp.base.text import counted
from cdp.corpus.passages import Block

Line = TypeVar("Line", bound=tuple[Any, ...])

_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"\w+")

# Lines at the top and bottom of a page that are compared.
EDGE_LINES = 3
# A line on so many pages, or in so many files of a format, is a running header, a footer or a notice.
RUNNING_SHARE = 0.5
LEAST_PAGES = 3
LEAST_FILES = 5
# Characters of a line that is compared between files, and words: a lone number or heading returns by chance.
LONGEST_LINE = 400
LEAST_LINE_WORDS = 3


def line_key(line: str) -> str:
    """A line as it is compared: its words, with every number as #."""
    return _DIGITS.sub("#", " ".join(line.lower().split()))


def running_lines(pages: Sequence[Sequence[str]]) -> dict[str, str]:
    """The first and last lines that return on most pages: headers, footers, page numbers, by their keys.

    Even and odd pages may differ, so half of the pages suffices.
    """
    if len(pages) < LEAST_PAGES:
        return {}
    edges = ([*lines[:EDGE_LINES], *lines[max(EDGE_LINES, len(lines) - EDGE_LINES) :]] for lines in pages)
    by_page = [{line_key(line): line for line in lines} for lines in edges]
    counts = Counter(key for found in by_page for key in found if key)
    first = {key: line for found in reversed(by_page) for key, line in found.items()}
    return {key: first[key] for key, n in counts.items() if n >= max(LEAST_PAGES, RUNNING_SHARE * 0.9 * len(pages))}


def without_running(lines: Sequence[Line], running: Container[str]) -> list[Line]:
    """The lines of a page, their text first, without running headers and footers."""
    if not running:
        return list(lines)
    last = len(lines) - EDGE_LINES
    edges = (i < EDGE_LINES or i >= last for i in range(len(lines)))
    return [line for line, edge in zip(lines, edges, strict=True) if not (edge and line_key(line[0]) in running)]


class RepeatedLines:
    """Lines that stand in most files of a format. Count all files with ``add`` before the first ``running``."""

    def __init__(self) -> None:
        # Hashes of lines: the lines of a hundred thousand files fit into memory.
        self._counts: Counter[tuple[str, int]] = Counter()
        self._files: Counter[str] = Counter()
        self._left_out: dict[str, set[int]] = {}
        self._shown: dict[int, str] = {}

    def add(self, format: str, lines: Iterable[int]) -> None:
        """Count the lines of one file, as ``hashes`` gives them."""
        self._files[format] += 1
        self._counts.update((format, line) for line in set(lines))

    @staticmethod
    def hashes(block: Block) -> Iterator[int]:
        """The lines of a block that are compared. Headings are left aside: most files have an introduction. So is the
        header of a table, which is the same in all files of a kind."""
        for line in () if block.level else block.text.split("\n")[max(0, block.header) :]:
            if len(line) > LONGEST_LINE or len(line.replace("|", " ").split()) < LEAST_LINE_WORDS:
                continue  # most lines of a table or a word list: the key takes ten times as long
            key = line_key(line)
            if sum(word != "#" for word in key.replace("|", " ").split()) >= LEAST_LINE_WORDS:
                yield hash(key)

    def running(self, file: str, format: str, blocks: Iterable[Block]) -> set[int]:
        """The lines of one file to leave out; none where they are most of it: then they are what it says."""
        least = max(LEAST_FILES, RUNNING_SHARE * self._files[format])
        if self._files[format] < LEAST_FILES or file in self._left_out:
            return self._left_out.get(file, set())

        shown: dict[int, str] = {}
        total = removed = 0
        for block in blocks:
            for line in block.text.split("\n")[max(0, block.header) :]:
                total += len(line)
                for key in self.hashes(Block(line, block.level)):
                    if self._counts[format, key] >= least:
                        removed += len(line)
                        shown[key] = " ".join(line.split())

        if 2 * removed > total:
            return set()

        self._left_out[file] = set(shown)
        self._shown = shown | self._shown

        return set(shown)

    def without(self, running: set[int], blocks: Iterable[Block]) -> Iterator[Block]:
        """The blocks less these lines."""
        for block in blocks:
            lines = block.text.split("\n")
            kept = lines[: max(0, block.header)]
            for line in lines[len(kept) :]:
                if not running or running.isdisjoint(self.hashes(Block(line, block.level))):
                    kept.append(line)
            if kept:
                yield block._replace(text="\n".join(kept).strip())

    def notes(self, by_file: Sequence[Mapping[str, str]]) -> list[str]:
        """Sentences on what was removed. ``by_file`` are the running lines that were removed from pages."""
        total = self._files.total()
        removed = Counter(key for keys in self._left_out.values() for key in keys).most_common(10)
        notes = [f"Removed from {n:,} of {total:,} files: {self._shown[key][:100]}" for key, n in removed]
        counts = Counter(key for running in by_file for key in running)
        if counts:
            # The first on its page, but no page number.
            key = max(counts, key=lambda key: (counts[key], key != "#"))
            shown = next(" ".join(running[key].split()) for running in by_file if key in running)
            others = f" and {counted(len(counts) - 1, 'more running line')}" if len(counts) > 1 else ""
            n = sum(map(bool, by_file))
            notes.append(f"Removed from {n:,} of {counted(total, 'file')}: “{shown[:100]}”{others}")
        return notes


# Words of a shingle, and shingles that are kept of a passage (bottom-k sketch, Broder 1997, section 4).
SHINGLE, SKETCH = 4, 16
# Of the sketches of two near-duplicates, so much is the same.
SAME_SHARE = 0.8
# Shorter passages are compared as they are.
LEAST_WORDS = 20


class NearDuplicates:
    """Passages that say nearly word for word what an earlier one says, with the same numbers.

    Texts that differ in a number (two invoices, two contracts) are different texts.
    """

    def __init__(self) -> None:
        self._exact: dict[int, str] = {}
        self._sketches: dict[tuple[int, int], tuple[frozenset[int], str]] = {}

    def earlier(self, id: str, text: str) -> str:
        """The id of the passage that ``text`` repeats; empty where there is none, and ``id`` is kept for the next."""
        words = _WORDS.findall(text.lower())
        exact = hash(" ".join(words))
        if (known := self._exact.setdefault(exact, id)) != id or len(words) < LEAST_WORDS:
            return known if known != id else ""

        numbers = hash(tuple(sorted(word for word in words if not word.isalpha())))
        # A hash that is the same in every process: the same import finds the same repeats.
        shingles = {crc32(" ".join(words[i : i + SHINGLE]).encode()) for i in range(len(words) - SHINGLE + 1)}

        lowest = sorted(shingles)[:SKETCH]
        sketch = frozenset(lowest)
        # Near-duplicates share one of their lowest shingles almost surely.
        for shingle in lowest[:3]:
            other = self._sketches.get((numbers, shingle))
            if other is not None and len(sketch & other[0]) >= SAME_SHARE * len(sketch | other[0]):
                return other[1]

        for shingle in lowest[:3]:
            self._sketches.setdefault((numbers, shingle), (sketch, id))

        return ""
