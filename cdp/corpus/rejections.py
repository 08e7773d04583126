"""Rows that could not become documents: all counted, the first thousand kept with line and reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from cdp.corpus.options import KEPT_REJECTIONS

EXCERPT_CHARACTERS = 120

UNREADABLE, BROKEN_OFF = FILE_KINDS = "unreadable file", "file broken off"
"""Kinds of rejections that are a whole file, or all of one behind a fault."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """One row (or, with ``line`` None, one whole file) that was not taken, and why.

    ``line`` counts from 1: the physical line where the row begins, or the row of a Parquet file. ``kind`` is one of a
    few fixed phrases by which rejections are counted; ``reason`` is the sentence for the user.
    """

    file: str
    line: int | None
    kind: str
    reason: str
    excerpt: str = ""


class RefusedValueError(Exception):
    """Raised where a single value of a row cannot be used; caught where the row is, never shown as such."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


def excerpt(text: object) -> str:
    """The first 120 characters of a row, on one line and safe to store as UTF-8."""
    try:
        head = str(text)[: EXCERPT_CHARACTERS * 2]
    except (RecursionError, ValueError):  # lists in lists without end; whole numbers of more than 4,300 digits
        head = "…"
    line = " ".join(head.split()).replace("\0", "\ufffd")
    line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= EXCERPT_CHARACTERS else line[: EXCERPT_CHARACTERS - 1] + "…"


class Rejections:
    """Collects rejected rows of one import."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._kept: list[Rejected] = []
        self._files: dict[str, int] = {}

    def add(self, rejected: Rejected) -> None:
        self.counts[rejected.kind] += 1
        if not self.full:
            self._files.setdefault(rejected.file, len(self._files))
            self._kept.append(rejected)

    @property
    def full(self) -> bool:
        """Whether further rejections are only counted."""
        return len(self._kept) >= KEPT_REJECTIONS

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def kept(self) -> list[Rejected]:
        """Those kept, in the order of files and lines."""
        return sorted(self._kept, key=lambda r: (self._files[r.file], r.line or 0))

    def summary(self) -> str:
        """``3 rows were rejected (2 broken JSON, 1 empty text)``, or an empty text."""
        if not self.counts:
            return ""
        parts = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.most_common())
        verb = "row was" if self.total == 1 else "rows were"
        return f"{self.total:,} {verb} rejected ({parts})"
