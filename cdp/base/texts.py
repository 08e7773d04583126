"""Many texts in order, in memory while they are few and in a file of this process's own once they are many.

A collection of millions is read once, encoded shard by shard, and asked for the texts of a few results: none of it
needs all texts in memory.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

from cdp.base.staging import scratch

HELD_CHARACTERS = 64 * 2**20
"""Characters that are held in memory; with more, all texts go to the file."""

BLOCK = 4096
"""Texts that are read at a time when one asks for all of them, and written at a time."""


class Texts:
    """Takes texts one by one; ``sequence`` gives them back."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._characters = 0
        self._file: BinaryIO | None = None
        self._ends = array("q", [0])

    def append(self, text: str) -> None:
        self._held.append(text)
        self._characters += len(text)
        if len(self._held) >= BLOCK if self._file else self._characters > HELD_CHARACTERS:
            self._write()

    def sequence(self) -> Sequence[str]:
        """All texts in their order: a list, or what reads them from the file. Nothing is appended afterwards."""
        if self._file is None:
            return self._held
        self._write()
        self._file.flush()
        return _Filed(self._file, self._ends)

    def _write(self) -> None:
        if self._file is None:
            # It has no name from the start, so it goes with the process, however that ends.
            self._file = tempfile.TemporaryFile(dir=scratch())  # noqa: SIM115 - it lives as long as the sequence
        for text in self._held:
            data = text.encode("utf-8", "surrogatepass")
            self._ends.append(self._ends[-1] + len(data))
            self._file.write(data)
        self._held.clear()


class _Filed(Sequence[str]):
    """Texts that follow each other in a file. They are read, not mapped: what was mapped would count as memory."""

    def __init__(self, file: BinaryIO, ends: array[int]) -> None:
        self._file, self._ends = file, ends

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: Any) -> Any:
        numbers = range(len(self))[index]
        if isinstance(numbers, int):
            return self._between(numbers, numbers + 1)[0]
        if numbers.step == 1:
            return self._between(numbers.start, numbers.stop)
        return [self[number] for number in numbers]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BLOCK):
            yield from self._between(start, min(start + BLOCK, len(self)))

    def _between(self, start: int, stop: int) -> list[str]:
        if start >= stop:
            return []
        ends = self._ends[start : stop + 1]
        data = b""
        while piece := os.pread(self._file.fileno(), ends[-1] - ends[0] - len(data), ends[0] + len(data)):
            data += piece  # a read gives at most 2 GiB
        if len(data) < ends[-1] - ends[0]:
            raise OSError("The file of texts ends too early: it was cut off.")
        return [data[a - ends[0] : b - ends[0]].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]
