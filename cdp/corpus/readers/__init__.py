"""The readers of corpus formats, choice by ending. To add one, declare a ``RowFormat`` or ``DocumentFormat`` in a file.

A *row format* turns one file into rows, each a document; the file of a *document format* is one document, which is
cut into passages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cdp.base.errors import InputError
from cdp.base.progress import PhaseProgress, silent
from cdp.base.registry import Registered, Registry
from cdp.corpus.options import ReadOptions
from cdp.corpus.passages import Block
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


@dataclass
class Report:
    """What is said of a document beside its text. ``progress(done, total)`` is called while a long one is read.

    ``title`` is the document's own, empty where its headings tell it. ``running`` are removed headers and footers, an
    example by its key; none are removed where ``keep_repeated``. ``scanned`` of the ``pages`` are images without text.
    """

    notes: list[str] = field(default_factory=list)
    progress: PhaseProgress = silent
    keep_repeated: bool = False
    title: str = ""
    running: dict[str, str] = field(default_factory=dict)
    pages: int = 0
    scanned: int = 0


@dataclass(frozen=True)
class RowFormat(Registered):
    """A format whose files hold documents."""

    suffixes: tuple[str, ...]
    rows: Callable[[Source, ReadOptions], Iterator[Row | BadRow]]


@dataclass(frozen=True)
class DocumentFormat(Registered):
    """A format whose files are documents. ``blocks(source, options, report)`` yields them in reading order.

    It raises RefusedValueError or InputError for a file that cannot be read.
    """

    suffixes: tuple[str, ...]
    blocks: Callable[[Source, ReadOptions, Report], Iterator[Block]]


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


__all__ = [
    "READERS", "BadRow", "Block", "DocumentFormat", "FileFormat", "Report", "Row", "RowFormat", "file_suffixes",
    "format_of",
]  # fmt: skip
