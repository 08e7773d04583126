"""How each family of benchmarks is published: which files it has and what is in them (``Entry``, ``Part``).

A family that is three tables is a section of ``data/benchmarks/layouts.toml``, read by ``tables``. Any other is a
module here, or a plug-in, that declares a ``Schema``, with the benchmarks that it brings along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cdp.base.records import Document, Qrel
from cdp.base.registry import Registered, Registry

# In UTF-8, nearly; 1 for every other language here.
BYTES_PER_CHARACTER = {"ar": 2, "ru": 2, "ja": 3, "ko": 3, "zh": 3}


@dataclass(frozen=True)
class Entry:
    """A benchmark that can be downloaded, or one that is the mean of its ``parts`` (then ``schema`` is empty).

    ``documents``, ``queries`` and ``cw`` (mean content words of a query) are None, and ``language`` empty, where they
    are not stated; ``figures`` is the source of the sizes, ``paper`` the paper's name for it (empty if it is not
    there). ``self_match`` is None where the rule for all benchmarks holds: equal ids are left out unless one of them is
    an answer. ``relevant_from`` is the lowest grade that the binary measures count as relevant.
    """

    name: str
    title: str
    groups: tuple[str, ...] = ()
    part_of: str = ""
    schema: str = ""
    repos: tuple[str, ...] = ()
    task: str = ""
    split: str = "test"
    language: str = ""
    licence: str = "not stated"
    licence_source: str = ""
    documents: int | None = None
    queries: int | None = None
    doc_chars: int | None = None
    cw: float | None = None
    figures: str = ""
    paper: str = ""
    self_match: bool | None = None
    titles: bool = True
    relevant_from: int = 1
    note: str = ""

    @property
    def text_bytes(self) -> int | None:
        """About how many bytes its documents' texts take; None where their length is not stated."""
        if self.documents is None or self.doc_chars is None:
            return None
        return self.documents * self.doc_chars * BYTES_PER_CHARACTER.get(self.language, 1)


# Role → the files found for it, in order.
PartFiles = Mapping[str, Sequence[Path]]


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """A query as published. ``excluded`` documents never count as retrieved for it (BRIGHT)."""

    id: str
    text: str
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """A benchmark as its source gives it. Each function starts a fresh pass over the source and may be called again.

    ``judgments`` name queries and documents by the ids of the other two.
    """

    documents: Callable[[], Iterator[Document]]
    queries: Callable[[], Iterator[SourceQuery]]
    judgments: Callable[[], Iterator[Qrel]]


@dataclass(frozen=True)
class Part:
    """Files of one role: in a hub repository (``patterns``, the first that matches anything counts), or at a ``url``.

    In a pattern ``*`` matches any characters but a slash, and ``**/`` for any folders.
    """

    role: str
    repo: str
    patterns: tuple[str, ...] = ()
    url: str = ""

    @property
    def wanted(self) -> str:
        """The address or the patterns, in words."""
        return self.url or " or ".join(self.patterns)

    def choose(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that the first fitting pattern matches, sorted; none if no pattern fits."""
        ordered = sorted(paths)
        for pattern in self.patterns:
            matches = [path for path in ordered if _expression(pattern).fullmatch(path)]
            if matches:
                return matches
        return []


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    pieces = re.split(r"(\*\*/|\*)", pattern)
    return re.compile("".join({"**/": "(?:.*/)?", "*": "[^/]*"}.get(p, re.escape(p)) for p in pieces))


@dataclass(frozen=True)
class Schema(Registered):
    """How one family of benchmarks is published: ``parts`` names the files of an entry, ``read`` their contents.

    ``entries`` are benchmarks that are known by name beside those of ``data/benchmarks/registry.csv``.
    """

    parts: Callable[[Entry], list[Part]]
    read: Callable[[Entry, PartFiles], Contents]
    entries: tuple[Entry, ...] = ()


SCHEMAS: Registry[Schema] = Registry("benchmark schema", Schema, __name__)
