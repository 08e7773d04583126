"""Weights of one's own: a CSV or TSV file with the columns ``query_id`` and ``weight``, or JSONL with these fields.

A query's id is ``<document id>-<its position among the document's queries, from 1>``, as everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import SHOWN_PROBLEMS, ConfigError, InputError
from cdp.base.text import LONGEST_SHOWN, shown, typed_path
from cdp.corpus.looking import iter_rows
from cdp.corpus.readers import BadRow, Row
from cdp.training.weightings import Weighting, equal

# Weights matter only against each other; what is larger could not be summed up over a batch.
LARGEST = 1e100


def read_weights(file: str, query_ids: Sequence[str]) -> NDArray[np.float64]:
    """The weight of each query, shape (n,), from 0 to 1e100; rows for other queries are not used.

    ConfigError without a file; InputError with the first 20 problems and their number if it cannot be used.
    """
    if not file.strip():
        raise ConfigError(
            "The weighting 'column' needs a file of weights.",
            hint="Set 'weights' to a CSV, TSV or JSONL file with query_id and weight.",
        )
    path = typed_path(file)
    if not path.is_file():
        raise InputError(f"There is no file {file}.", hint="Give the path of a file on this server.")

    found: dict[str, float] = {}
    wanted = set(query_ids)
    problems, n = [], 0
    for row in iter_rows(path):
        problem = _problem(row, path, found, wanted)
        problems += [problem] if problem and n < SHOWN_PROBLEMS else []
        n += bool(problem)

    absent = [f"{query_id} has no weight" for query_id in query_ids if query_id not in found]
    problems, n = [*problems, *absent][:SHOWN_PROBLEMS], n + len(absent)
    if problems:
        more = f" … and {n - SHOWN_PROBLEMS} more" if n > SHOWN_PROBLEMS else ""
        raise InputError("; ".join(problems) + more + ".", file=path)
    return np.array([found[query_id] for query_id in query_ids], np.float64)


def _problem(row: Row | BadRow, path: Path, found: dict[str, float], wanted: Collection[str]) -> str:
    """Take the weight of a row into ``found`` if its query is wanted; return what is wrong with it, if anything."""
    if isinstance(row, BadRow):
        raise InputError(f"It cannot be read: {row.kind} ({row.reason}).", file=path, line=row.line)
    for column in ("query_id", "weight"):
        if column not in row.values:
            raise InputError(f"It has no column {column!r}.", file=path, line=row.line)

    name, value = str(row.values["query_id"]), row.values["weight"]
    weight = -1.0
    with suppress(TypeError, ValueError, OverflowError):
        weight = float(value)
    if not 0 <= weight <= LARGEST:
        found |= {name: weight} if name in wanted else {}
        return f"{name[:LONGEST_SHOWN]}: {shown(value)} is no weight (a number from 0 to {LARGEST:g})"
    if name in wanted and found.setdefault(name, weight) != weight:
        return f"{name} has two weights"
    return ""


WEIGHTING = Weighting(
    "column",
    "From a file",
    "The weight that a file of yours gives each query.",
    equal,
    needs="column",
    settings=("weights",),
    order=50,
)
