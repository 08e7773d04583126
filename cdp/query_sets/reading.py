"""Rows of queries from what users have: JSONL or JSON, CSV, TSV (each also .gz), and BEIR folders, also as a zip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from cdp.base.errors import InputError
from cdp.corpus.sources import Budget, Source, existing
from cdp.query_sets.beir import all_splits, beir_rows, splits_of
from cdp.query_sets.options import ImportOptions
from cdp.query_sets.rows import QueryRow, json_rows, table_rows

MAX_UNPACKED_BYTES = 20 * 2**30


def read_pairs(pairs: Iterable[tuple[str, str | Iterable[str]]]) -> Iterator[QueryRow]:
    """Rows from (document id, query or queries) pairs; their number stands for the line."""
    for number, (document_id, queries) in enumerate(pairs, start=1):
        yield QueryRow(number, document_id, (queries,) if isinstance(queries, str) else tuple(queries))


def beir_splits(path: Path, options: ImportOptions) -> tuple[list[str], list[str]]:
    """(the splits of a BEIR folder or zip that are taken, those that are left out); both empty for another file."""
    path = existing(path)  # first: to look at a name that no file can have is an OSError
    if not path.is_dir() and path.suffix.lower() != ".zip":
        return [], []
    return splits_of(path, options, Budget.of(path, MAX_UNPACKED_BYTES))


def beir_layout(path: Path) -> list[str]:
    """The splits of a folder or a zip in BEIR layout; none for anything else."""
    path = existing(path)
    if not path.is_dir() and path.suffix.lower() != ".zip":
        return []
    return all_splits(path, Budget.of(path, MAX_UNPACKED_BYTES))


def read_path(path: Path, options: ImportOptions) -> Iterator[QueryRow]:
    """The rows of a file or a BEIR folder, streamed. InputError where it cannot be read at all."""
    budget = Budget.of(existing(path), MAX_UNPACKED_BYTES)
    source = Source.of_file(path, path.name, budget)
    if options.reasoning_field and (path.is_dir() or source.suffix == ".zip"):
        raise InputError(
            "A BEIR folder has no field for reasoned forms.",
            hint="Import q and q′ from a JSONL or CSV file, or q′ as a query set of its own with the same documents.",
            file=path,
        )
    if path.is_dir() or source.suffix == ".zip":
        return beir_rows(path, options, budget)
    if source.suffix in (".jsonl", ".ndjson", ".json"):
        return json_rows(source, options)
    if source.suffix in (".csv", ".tsv", ".tab"):
        return table_rows(source, "," if source.suffix == ".csv" else "\t", options)
    raise InputError(
        "Queries are read from .jsonl, .json, .csv and .tsv files (also .gz) and from BEIR folders (also .zip).",
        file=path,
    )
