"""The benchmarks known by name, read from ``data/benchmarks/registry.csv``: groups, means over parts.

CQADupStack is twelve forums, each a benchmark of its own: its entry has figures and no files.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.workspace import SHIPPED_DATA
from cdp.benchmarks.schemas import SCHEMAS, Entry

FILE = SHIPPED_DATA / "benchmarks" / "registry.csv"
PAPER = SHIPPED_DATA / "published" / "datasets.csv"


@cache
def _paper() -> dict[str, dict[str, str]]:
    with open(PAPER, encoding="utf-8", newline="") as file:
        return {row["dataset"]: row for row in csv.DictReader(file)}


def entries() -> tuple[Entry, ...]:
    """All entries in the order of the file, the parts of a mean after it; then those that schemas bring along."""
    return tuple(_by_name().values())


@cache
def _by_name() -> dict[str, Entry]:
    with open(FILE, encoding="utf-8", newline="") as file:
        by_name = {row["name"]: _entry(row) for row in csv.DictReader(file)}

    for schema in SCHEMAS.values():
        for entry in schema.entries:
            if entry.name in by_name:
                raise ConfigError(f"Two benchmarks are called {entry.name}.", hint=f"Rename that of {schema.name}.")
            by_name[entry.name] = replace(entry, schema=schema.name)

    return by_name


def _entry(row: Mapping[str, str]) -> Entry:
    source, _, named = row["figures"].partition(":")
    printed: Mapping[str, str] = {}
    if source == "paper":
        source, printed = "the paper", _paper()[named or row["name"]]

    def whole(column: str, in_paper: str) -> int | None:
        text = row[column] or printed.get(in_paper, "")
        return int(text) if text else None

    same = ("name", "title", "part_of", "schema", "task", "split", "language", "licence", "licence_source", "note")
    return Entry(
        **{column: row[column] for column in same},
        groups=tuple(filter(None, row["groups"].split("|"))),
        repos=tuple(filter(None, row["repos"].split("|"))),
        documents=whole("documents", "n_docs"),
        queries=whole("queries", "n_queries"),
        doc_chars=whole("doc_chars", "doc_len_chars"),
        cw=float(printed["cw"]) if printed else None,
        figures=source,
        paper=printed.get("dataset", ""),
        self_match={"yes": True, "no": False}.get(row["self_match"]),
        titles=row["titles"] == "yes",
        relevant_from=int(row["relevant_from"]),
    )


def find(name: str) -> Entry | None:
    """Return the entry of that name, ignoring case; None if there is none."""
    return _by_name().get(name.strip().lower())


def groups() -> dict[str, list[str]]:
    """Return {title: names of its members} of each entry that is several benchmarks, and of each group."""
    found: dict[str, list[str]] = defaultdict(list)
    for entry in sorted(entries(), key=lambda entry: not entry.part_of):
        titles: Sequence[str] = entry.groups
        if entry.part_of:
            titles = [_by_name()[entry.part_of].title]
        for title in titles:
            found[title].append(entry.name)

    return found


def downloadable(name: str) -> Entry:
    """Return the entry of that name. NotFoundError if there is none, ConfigError for one that is several benchmarks."""
    entry = find(name)
    if entry is None:
        raise NotFoundError("benchmark in the registry", name, known=list(_by_name()), hint="See `benchmarks list`.")
    if not entry.schema:
        parts = groups()[entry.title]
        raise ConfigError(f"{entry.title} is {len(parts)} benchmarks.", hint=f"Name one: {', '.join(parts)}.")
    return entry
