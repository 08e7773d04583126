"""What every reader is: data plus one function.

A *row format* turns one file into rows; a *container* turns a path into the files to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cdp.base.registry import Registered
from cdp.corpus.checks import FieldMap, Rejected
from cdp.corpus.columns import Columns
from cdp.corpus.options import ReadOptions
from cdp.corpus.sources import Budget, Source


class Row(NamedTuple):
    """One row as it stands in a file. ``line`` counts from 1 and is None where the file is the row."""

    line: int | None
    values: Mapping[str, Any]


class RowsByFields(Iterator["Row | BadRow | Columns"]):
    """The rows of a file that may come as columns once it is told which ``fields`` count."""

    fields: FieldMap | None = None


class BadRow(NamedTuple):
    """A row that is no row of its format."""

    line: int | None
    kind: str
    reason: str
    excerpt: str = ""


@dataclass
class ContainerContents:
    """What a container holds: the files to read, those that cannot be, and what the user should know."""

    sources: list[Source]
    rejected: list[Rejected] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RowFormat(Registered):
    """A format whose files hold documents. ``own_fields``: rows come as ``_id, title, text``, nothing to choose."""

    suffixes: tuple[str, ...]
    rows: Callable[[Source, ReadOptions], Iterator[Row | BadRow] | RowsByFields]
    own_fields: bool = False


@dataclass(frozen=True)
class Container(Registered):
    """A path with several files, if it ``fits``; ``contents(path, options, known suffixes, budget)`` stays open while
    they are read. One without ``suffixes`` is a folder."""

    suffixes: tuple[str, ...]
    fits: Callable[[Path], bool]
    contents: Callable[[Path, ReadOptions, Sequence[str], Budget], AbstractContextManager[ContainerContents]]
