"""The paper's figures as shipped in ``data/published``: every row as printed, and the notes on what disagrees."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cdp.base.workspace import SHIPPED_DATA

FOLDER = SHIPPED_DATA / "published"

PublishedRow = dict[str, Any]

WHOLE = ("queries_per_doc", "n_docs", "n_queries", "n_datasets", "cw_min", "cw_max")
REAL = ("value", "cw", "percent", "r")
FLAGS = ("is_average", "bold", "underlined", "dagger", "significant_printed")


@lru_cache(maxsize=16)
def read(name: str) -> tuple[PublishedRow, ...]:
    """The rows of ``<name>.csv``. Columns of counts are int or None, of values float or None, of marks bool."""
    with open(FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        return tuple(_typed(row) for row in csv.DictReader(file))


def _typed(row: Mapping[str, str]) -> PublishedRow:
    typed: PublishedRow = dict(row)
    for column, text in row.items():
        if column in WHOLE:
            typed[column] = int(text) if text else None
        elif column in REAL:
            typed[column] = float(text) if text else None
        elif column in FLAGS:
            typed[column] = text == "true"
    return typed


def results() -> tuple[PublishedRow, ...]:
    """Every NDCG@10 of the paper: ``table``, the condition, ``dataset`` (empty for averages), ``value`` in percent."""
    return read("results")


def datasets() -> tuple[PublishedRow, ...]:
    """The 32 rows on evaluation datasets (HotpotQA twice): ``group``, ``dataset``, ``cw``, ``n_queries`` …"""
    return read("datasets")


@dataclass(frozen=True)
class Note:
    """A conflict, a wrong mark or a gap in the printed figures. ``where`` holds one pattern per set of rows."""

    id: int
    kind: str
    note: str
    printed: str
    computed: str
    where: tuple[Mapping[str, Any], ...]

    def concerns(self, row: Mapping[str, Any]) -> bool:
        """Whether the note is about this row: every field of one of its patterns fits."""
        return any(all(_fits(row.get(field), wanted) for field, wanted in p.items()) for p in self.where)


def _fits(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list) else value == wanted


@lru_cache(maxsize=1)
def notes() -> tuple[Note, ...]:
    """All notes, in order of their numbers."""
    values = json.loads((FOLDER / "notes.json").read_text(encoding="utf-8"))
    return tuple(Note(**{**value, "where": tuple(value["where"])}) for value in values)
