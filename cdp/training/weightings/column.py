"""Weights of one's own: a CSV or TSV file with the columns ``query_id`` and ``weight``, or JSONL with these fields.

A query's id is ``<document id>-<its position among the document's queries, from 1>``, as everywhere.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import SHOWN_PROBLEMS, ConfigError, InputError
from cdp.base.text import shown, typed_path
from cdp.corpus.sources import Budget, Source, numbered_lines, open_text
from cdp.training.weightings import Weighting, equal

# Of a file of weights: thirty million queries.
MOST_BYTES = 2 * 10**9

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
    weight_of: dict[str, float] = {}
    problems: list[str] = []
    for line, row in _rows(path):
        try:
            weight, query_id = float(row["weight"]), row["query_id"]
            if not isinstance(query_id, str | int):
                raise TypeError
            if not 0 <= weight <= LARGEST:
                raise ValueError
            if weight_of.setdefault(str(query_id), weight) != weight:
                problems.append(f"line {line} gives {query_id} another weight than a line before")
        except (KeyError, TypeError):
            problems.append(f"line {line} has no query_id or no weight")
        except (ValueError, OverflowError):
            problems.append(f"line {line}: {shown(row['weight'])} is no weight (a number from 0 to {LARGEST:g})")
    problems += [f"{query_id} has no weight" for query_id in query_ids if query_id not in weight_of]
    if problems:
        more = f" … and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
        raise InputError("; ".join(problems[:SHOWN_PROBLEMS]) + more + ".", file=path)
    return np.array([weight_of[query_id] for query_id in query_ids], dtype=np.float64)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, fields) of each row."""
    source = Source.of_file(path, path.name, Budget(MOST_BYTES))
    if source.suffix in (".jsonl", ".ndjson"):
        with open_text(source, "utf-8") as text:
            for number, line in numbered_lines(text):
                if line is None or line.strip():
                    try:
                        value = json.loads(line or "")
                    except (ValueError, RecursionError) as error:
                        raise InputError("It is not JSON.", file=path, line=number) from error
                    yield number, value if isinstance(value, dict) else {}
        return
    with open_text(source, "utf-8", newline="") as text:
        reader = csv.DictReader(text, delimiter="\t" if source.suffix == ".tsv" else ",")
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as error:
            raise InputError(f"It cannot be read: {error}.", file=path, line=reader.line_num) from error


WEIGHTING = Weighting(
    "column",
    "From a file",
    "The weight that a file of yours gives each query.",
    equal,
    needs="column",
    settings=("weights",),
    order=50,
)
