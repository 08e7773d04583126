"""The benchmarks that are known by name, from ``data/benchmarks/registry.csv``, and the groups that they count in.

A group's mean runs over its members: the unweighted mean of those that there is a score for, never without saying how
many these are. CQADupStack is one member of BEIR and itself the unweighted mean of twelve forums; it counts once all
twelve have a score.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.workspace import SHIPPED_DATA
from cdp.benchmarks.schemas import SCHEMAS, Entry

FILE = SHIPPED_DATA / "benchmarks" / "registry.csv"
PAPER = SHIPPED_DATA / "published" / "datasets.csv"


@dataclass(frozen=True)
class Group:
    """Benchmarks that are reported as one mean. ``members`` are names of entries."""

    name: str
    title: str
    members: tuple[str, ...]


# Name → title, which is also what the registry's file and the paper call the group.
GROUPS = {
    "ms-marco": "MS MARCO",
    "trec-dl": "TREC-DL",
    "beir": "BEIR",
    "bright": "BRIGHT",
    "multi-hop": "Multi-hop",
    "miracl": "MIRACL",
    "miracl-train": "MIRACL training",
    "nanobeir": "NanoBEIR",
}


@cache
def _paper() -> dict[str, dict[str, str]]:
    with open(PAPER, encoding="utf-8", newline="") as file:
        return {row["dataset"]: row for row in csv.DictReader(file)}


@cache
def entries() -> tuple[Entry, ...]:
    """All entries in the order of the file, the parts of a mean after it; then those that schemas bring along."""
    with open(FILE, encoding="utf-8", newline="") as file:
        by_name = {row["name"]: _entry(row) for row in csv.DictReader(file)}
    for schema in SCHEMAS.values():
        for entry in schema.entries:
            if entry.name in by_name:
                raise ConfigError(f"Two benchmarks are called {entry.name}.", hint=f"Rename that of {schema.name}.")
            by_name[entry.name] = replace(entry, schema=schema.name)
    return tuple(by_name.values())


def _entry(row: Mapping[str, str]) -> Entry:
    source, _, named = row["figures"].partition(":")
    printed = _paper()[named or row["name"]] if source == "paper" else {}

    def whole(column: str, in_paper: str) -> int | None:
        text = row[column] or printed.get(in_paper, "")
        return int(text) if text else None

    same = ("name", "title", "part_of", "schema", "task", "split", "language", "licence", "licence_source", "note")
    return Entry(
        **{column: row[column] for column in same},
        groups=_parts(row["groups"]),
        repos=_parts(row["repos"]),
        documents=whole("documents", "n_docs"),
        queries=whole("queries", "n_queries"),
        doc_chars=whole("doc_chars", "doc_len_chars"),
        cw=float(printed["cw"]) if printed else None,
        figures="the paper" if printed else source,
        paper=printed.get("dataset", ""),
        self_match={"yes": True, "no": False}.get(row["self_match"]),
        titles=row["titles"] == "yes",
        relevant_from=int(row["relevant_from"]),
    )


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split("|") if part)


@cache
def groups() -> dict[str, Group]:
    """The groups by name, each with its members in the order of the file."""
    return {
        name: Group(name, title, tuple(e.name for e in entries() if title in e.groups))
        for name, title in GROUPS.items()
    }


def find(name: str) -> Entry | None:
    """Return the entry of that name, ignoring case; None if there is none."""
    wanted = name.strip().lower()
    return next((entry for entry in entries() if entry.name == wanted), None)


def find_group(name: str) -> Group | None:
    """Return the group of that name or title, ignoring case; None if there is none."""
    wanted = name.strip().lower()
    return next((g for g in groups().values() if wanted in (g.name, g.title.lower())), None)


def leaves(name: str) -> tuple[Entry, ...]:
    """The downloadable entries behind an entry's or a group's name. NotFoundError if nothing is called that.

    A group brings those of all its members, a mean its parts, any other entry itself.
    """
    group, entry = find_group(name), find(name)
    if entry is not None:
        return (entry,) if entry.schema else parts(entry.name)
    if group is None:
        names = [*groups(), *(e.name for e in entries() if not e.part_of)]
        raise NotFoundError("benchmark in the registry", name, known=names, hint="See `benchmarks list`.")
    return tuple(leaf for member in group.members for leaf in leaves(member))


def parts(name: str) -> tuple[Entry, ...]:
    """The entries whose unweighted mean is the score of ``name``; none for one with a collection of its own."""
    return tuple(entry for entry in entries() if entry.part_of == name)
