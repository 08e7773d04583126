"""The readers of corpus formats. Adding one is adding a file that declares a ``RowFormat`` or ``Container``.

A *row format* turns one file into rows, each a document; the file of a *document format* is one document, which is
cut into passages; a *container* turns a path into the files to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cdp.base.errors import InputError
from cdp.base.registry import Registered, Registry
from cdp.corpus.checks import Rejected
from cdp.corpus.options import ReadOptions
from cdp.corpus.passages import Block
from cdp.corpus.sources import Budget, Source


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
class ContainerContents:
    """The files of a container to read, those that cannot be read, and notes."""

    sources: list[Source]
    rejected: list[Rejected] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Report:
    """What is said of a document beside its text. ``progress(done, total)`` is called while a long one is read."""

    notes: list[str] = field(default_factory=list)
    progress: Callable[[int, int], None] = lambda done, total: None


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


@dataclass(frozen=True)
class Container(Registered):
    """A path with several files, if it ``fits``.

    ``contents(path, options, known suffixes, budget)`` stays open while they are read. A folder has no ``suffixes``.
    """

    suffixes: tuple[str, ...]
    fits: Callable[[Path], bool]
    contents: Callable[[Path, ReadOptions, Sequence[str], Budget], AbstractContextManager[ContainerContents]]


FileFormat = RowFormat | DocumentFormat
READERS: Registry[FileFormat | Container] = Registry("corpus format", (RowFormat, DocumentFormat, Container), __name__)


def file_suffixes() -> tuple[str, ...]:
    """The endings of files that hold documents, without ``.gz``."""
    return tuple(suffix for reader in READERS.values() if isinstance(reader, FileFormat) for suffix in reader.suffixes)


def container_of(path: Path, options: ReadOptions) -> Container | None:
    """The container that opens ``path``, or None for a single file. InputError where the two do not fit."""
    chosen = READERS.get(options.format)
    by_path = next((r for r in READERS.values() if isinstance(r, Container) and r.fits(path)), None)
    if not isinstance(chosen, Container):
        return by_path
    if path.is_dir() and chosen.suffixes:
        raise InputError(f"It is a folder, not a {chosen.name}.", file=path)
    if path.is_dir() or chosen.suffixes:
        return chosen
    if by_path is None:
        raise InputError("It is a file, not a folder.", hint="Give the folder's path.", file=path)
    return by_path


def format_of(source: Source, options: ReadOptions) -> FileFormat:
    """The format chosen by the user, else the one of the file's ending. InputError for an unknown ending."""
    chosen = READERS.get(options.format)
    if isinstance(chosen, FileFormat):
        return chosen
    for reader in READERS.values():
        if isinstance(reader, FileFormat) and source.suffix in reader.suffixes:
            return reader
    ending = f"The ending {source.suffix!r}" if source.suffix else "A name without an ending"
    raise InputError(
        f"{ending} does not tell the format.",
        hint=f"Known endings: {', '.join(file_suffixes())}, .zip; or set the format.",
        file=source.name,
    )


__all__ = [
    "READERS", "BadRow", "Block", "Container", "ContainerContents", "DocumentFormat", "FileFormat", "Report", "Row",
    "RowFormat", "container_of", "file_suffixes", "format_of",
]  # fmt: skip
