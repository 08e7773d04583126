"""Weights of one's own: a CSV or TSV file with the columns ``query_id`` and ``weight``, or JSONL with these fields.

A query's id is ``<document id>-<its position among the document's queries, from 1>``, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import SHOWN_PROBLEMS, ConfigError, InputError
from cdp.base.text import shown, typed_path
from cdp.training.weightings import Weighting, equal

# Weights matter only against each other; what is larger could not be summed up over a batch.
LARGEST = 1e100


def read_weights(file: str, query_ids: Sequence[str]) -> NDArray[np.float64]:
    """The weight of each query, shape (n,), from 0 to 1e100; rows for other queries are not used.

    ConfigError without a file; InputError with the first 20 problems and their number if it cannot be used.
    """
    import zlib

    import pandas as pd

    if not file.strip():
        raise ConfigError(
            "The weighting 'column' needs a file of weights.",
            hint="Set 'weights' to a CSV, TSV or JSONL file with query_id and weight.",
        )
    path = typed_path(file)
    if not path.is_file():
        raise InputError(f"There is no file {file}.", hint="Give the path of a file on this server.")
    try:
        if {".jsonl", ".ndjson"} & {*path.suffixes}:
            rows = pd.read_json(path, lines=True, dtype=False)
        else:
            rows = pd.read_csv(path, sep="\t" if ".tsv" in path.suffixes else ",", dtype=str, keep_default_na=False)
        given = pd.Series(rows["weight"].to_numpy(), rows["query_id"].astype(str))
    except KeyError as error:
        raise InputError(f"It has no column {error}.", file=path) from error
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"It cannot be read: {error}.", file=path) from error
    weights = pd.to_numeric(given, errors="coerce")
    wrong = given[~weights.between(0, LARGEST)]
    problems = [
        f"{name}: {shown(value)} is no weight (a number from 0 to {LARGEST:g})" for name, value in wrong.items()
    ]
    weights = weights[~weights.reset_index().duplicated().to_numpy()]
    problems += [f"{name} has two weights" for name in weights.index[weights.index.duplicated()]]
    problems += [f"{query_id} has no weight" for query_id in query_ids if query_id not in weights.index]
    if problems:
        more = f" … and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
        raise InputError("; ".join(problems[:SHOWN_PROBLEMS]) + more + ".", file=path)
    return weights.loc[list(query_ids)].to_numpy(np.float64)


WEIGHTING = Weighting(
    "column",
    "From a file",
    "The weight that a file of yours gives each query.",
    equal,
    needs="column",
    settings=("weights",),
    order=50,
)
