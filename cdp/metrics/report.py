"""What a metrics job writes down: values at each M, and per-document columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.workspace import read_json_or_none, write_json
from cdp.metrics.query_set import CORPUS, MetricValue, aggregate, depths_of


@dataclass(frozen=True)
class Selection:
    """The documents that are measured, each with at least one query.

    ``human`` maps document ids to human queries; ``sampled_from`` is the number of documents in the whole set where
    these are a sample of it.
    """

    ids: list[str]
    queries: list[list[str]]
    human: dict[str, list[str]] | None
    language: str
    sampled_from: int | None

    def only(self, ids: Sequence[str]) -> Selection:
        """Without the documents that are not among ``ids``, which stand in the same order."""
        if len(ids) == len(self.ids):
            return self
        wanted = set(ids)
        rows = [row for row, name in enumerate(self.ids) if name in wanted]
        return replace(self, ids=[self.ids[row] for row in rows], queries=[self.queries[row] for row in rows])


def values_at_depths(
    name: str, columns: NDArray[np.float64], selection: Selection, *, reason: str, model: str, seed: int, **facts: Any
) -> list[MetricValue]:
    """A measure at each M from the documents' values, (n_documents, n_depths); ``reason`` where it is undefined."""
    return [
        aggregate(
            name,
            column,
            n_queries=sum(min(len(queries), depth) for queries in selection.queries),
            per_doc=depth,
            sampled_from=selection.sampled_from,
            reason=reason,
            model=model,
            seed=seed,
            **facts,
        )
        for depth, column in zip(depths_of(selection.queries), columns.T, strict=True)
    ]


def across_documents(
    name: str, of_pairs: NDArray[np.float64], selection: Selection, *, model: str, seed: int, **facts: Any
) -> MetricValue:
    """A measure over pairs of queries of different documents, from a value of each pair, (n_pairs,), NaN for none."""
    n = 2 * int((~np.isnan(of_pairs)).sum())
    value = aggregate(
        name, of_pairs, n_queries=n, per_doc=depths_of(selection.queries)[-1], scope=CORPUS, model=model, seed=seed,
        reason="There are not two documents with queries.", sampled_from=selection.sampled_from, **facts,
    )  # fmt: skip
    return replace(value, n_documents=n)


def per_document_columns(ids: Sequence[str], columns: Mapping[str, NDArray[np.float64]]) -> dict[str, list[Any]]:
    """Columns of equal length for JSON: document_id and one per measure, null where a measure is not defined."""
    return {
        "document_id": list(ids),
        **{name: [None if np.isnan(v) else round(float(v), 6) for v in values] for name, values in columns.items()},
    }


class Ledger:
    """Rows of ``width`` float32 numbers in an append-only file, tied to what they are results of.

    ``fingerprint`` names the work: the items in their order and the model. A file made for other work is begun again;
    a row torn by a crash is dropped.
    """

    def __init__(self, path: Path, fingerprint: str, width: int = 1) -> None:
        self._path = path
        self.width = width
        header = path.with_suffix(".json")
        identity = {"fingerprint": fingerprint, "width": width}
        if read_json_or_none(header) != identity:
            path.unlink(missing_ok=True)
            write_json(header, identity)
        row = 4 * width
        size = path.stat().st_size if path.exists() else 0
        if size % row:
            os.truncate(path, size - size % row)
        self.done = size // row

    def append(self, rows: ArrayLike) -> None:
        """Add rows of shape (n, width), or (n,) if the width is 1; they are on disk when this returns."""
        values = np.asarray(rows, dtype="<f4").reshape(-1, self.width)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "ab") as file:
            file.write(values.tobytes())
            file.flush()
            os.fsync(file.fileno())
        self.done += len(values)

    def read(self) -> NDArray[np.float64]:
        """All rows so far: shape (done, width)."""
        if not self.done:
            return np.zeros((0, self.width))
        return np.fromfile(self._path, dtype="<f4").astype(np.float64).reshape(-1, self.width)[: self.done]
