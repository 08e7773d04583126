"""The readers of corpus formats, choice by ending; the words of a file that its reader left behind.

To add one, declare a ``RowFormat`` or ``DocumentFormat`` in a file. A *row format* turns one file into rows, each a
document; the file of a *document format* is one document, which is cut into passages.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.base.registry import Registered, Registry
from cdp.base.text import PhaseProgress, silent
from cdp.corpus.documents import UNSPACED_LETTERS
from cdp.corpus.options import ReadOptions
from cdp.corpus.passages import Block as Block
from cdp.corpus.sources import Source


class Row(NamedTuple):
    """One row as it stands in a file. ``line`` counts from 1 and is None where the file is the row."""

    line: int | None
    values: Mapping[str, Any]


class BadRow(NamedTuple):
    """A row that its format cannot parse."""

    line: int | None
    kind: str
    reason: str
    excerpt: str = ""


class Chunk(NamedTuple):
    """Rows that were parsed together: the line of each, int64 of shape (n,), their columns, and ``row(i)``, one as the
    reader of rows gives it."""

    lines: NDArray[np.int64]
    columns: Mapping[str, pa.StringArray]
    row: Callable[[int], Row]


Item = Row | BadRow | Chunk


# A character of a script without spaces is a word; else a run of letters and digits.
_WORD = re.compile(rf"[{UNSPACED_LETTERS}]|[^\W_{UNSPACED_LETTERS}]+")
# Soft hyphens, joiners and marks of direction stand inside words.
_INVISIBLE = dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF))


def words(text: str) -> list[str]:
    """Return the words of a text as they are compared: without case, marks of layout and forms of the same letter."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_INVISIBLE))
    return _WORD.findall(text.casefold())


def missing(inside: Mapping[str, Counter[str]], came: Counter[str]) -> dict[str, int]:
    """Return how many words of each kind did not come, the most first.

    A word is compared with itself, so that text that came twice makes up for nothing.
    """
    lost = sum(inside.values(), Counter[str]()) - came
    if not lost:
        return {}

    # A word stands in several kinds: the one that lost the greatest share of its words is where it was lost.
    def share(kind: str) -> float:
        return (inside[kind] & lost).total() / max(1, inside[kind].total())

    found = {}
    for kind in sorted(inside, key=share, reverse=True):
        own = inside[kind] & lost
        lost -= own
        found[kind] = own.total()
    return {kind: n for kind, n in sorted(found.items(), key=lambda pair: -pair[1]) if n}


@dataclass
class Report:
    """What is said of a document beside its text. ``progress(done, total)`` is called while a long one is read.

    ``title`` is the document's own, empty where its headings tell it. ``running`` are removed headers and footers, an
    example by its key; none are removed where ``keep_repeated``. ``scanned`` of the ``pages`` are images without text,
    others with the numbers ``recognised`` were: as ``languages`` (empty: the document's), for which
    ``more_time(seconds)`` is asked.

    ``inside`` are the words of the file by kind of place ("text", "footnotes", …) as ``count`` is told them: by a count
    of its own, for what the walk that makes the blocks passes over would be missing from its own count, too. Of these
    ``n_words``, ``removed`` were left out on purpose, by kind, and ``missing`` in no block.
    """

    notes: list[str] = field(default_factory=list)
    progress: PhaseProgress = silent
    more_time: Callable[[float], None] = lambda seconds: None
    keep_repeated: bool = False
    languages: str = ""
    title: str = ""
    running: dict[str, str] = field(default_factory=dict)
    pages: int = 0
    scanned: int = 0
    recognised: list[int] = field(default_factory=list)
    inside: dict[str, Counter[str]] = field(default_factory=dict)
    outside: Counter[str] = field(default_factory=Counter)
    removed: dict[str, int] = field(default_factory=dict)
    n_words: int = 0
    missing: dict[str, int] = field(default_factory=dict)

    def count(self, text: str, kind: str = "text", times: int = 1) -> None:
        """Count the words of a text that stands in the file so many times."""
        counts = self.inside.setdefault(kind, Counter())
        for word, n in Counter(words(text)).items():
            counts[word] += n * times

    def remove(self, text: str, kind: str) -> None:
        """Count the words of a text that is left out on purpose; ``kind`` says what it is, in words."""
        found = words(text)
        self.outside.update(found)
        if found:
            self.removed[kind] = self.removed.get(kind, 0) + len(found)

    def compare(self, texts: Iterable[str]) -> None:
        """Say how many words were counted, and which are neither in the texts that came out nor removed."""
        if not self.inside:  # a PDF counts by words only where characters are missing
            return
        came = Counter(words(self.title))
        for text in texts:
            came.update(words(text))
        self.n_words = self.n_words or sum(count.total() for count in self.inside.values())
        self.missing = missing(self.inside, came + self.outside)


@dataclass(frozen=True)
class RowFormat(Registered):
    """A format whose files hold documents. ``stream`` gives the rows that ``rows`` does, most of them as columns, where
    these hold what the options say."""

    suffixes: tuple[str, ...]
    rows: Callable[[Source, ReadOptions], Iterator[Row | BadRow]]
    stream: Callable[[Source, ReadOptions], Iterator[Item]] | None = None


@dataclass(frozen=True)
class DocumentFormat(Registered):
    """A format whose files are documents. ``blocks(source, options, report)`` yields them in reading order.

    It raises RefusedValueError or InputError for a file that cannot be read. ``apart``: no passage crosses a page, as a
    slide or a sheet.
    """

    suffixes: tuple[str, ...]
    blocks: Callable[[Source, ReadOptions, Report], Iterator[Block]]
    apart: bool = False


FileFormat = RowFormat | DocumentFormat
READERS: Registry[FileFormat] = Registry("corpus format", (RowFormat, DocumentFormat), __name__)


def file_suffixes() -> tuple[str, ...]:
    """The endings of files that hold documents, without ``.gz``."""
    return tuple(suffix for reader in READERS.values() for suffix in reader.suffixes)


def format_of(source: Source, options: ReadOptions) -> FileFormat:
    """The format chosen by the user, else the one of the file's ending. InputError for an unknown ending."""
    if options.format in READERS:
        return READERS[options.format]
    for reader in READERS.values():
        if source.suffix in reader.suffixes:
            return reader
    ending = f"The ending {source.suffix!r}" if source.suffix else "A name without an ending"
    raise InputError(
        f"{ending} does not tell the format.",
        hint=f"Known endings: {', '.join(file_suffixes())}, .zip; or set the format.",
        file=source.name,
    )
