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
from cdp.metrics.query_set import MetricValue, aggregate


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

    @property
    def most(self) -> int:
        """The largest number of queries of a document."""
        return max(map(len, self.queries), default=0)

    def only(self, ids: Sequence[str]) -> Selection:
        """Without the documents that are not among ``ids``, which stand in the same order."""
        if len(ids) == len(self.ids):
            return self
        wanted = set(ids)
        rows = [row for row, name in enumerate(self.ids) if name in wanted]
        return replace(self, ids=[self.ids[row] for row in rows], queries=[self.queries[row] for row in rows])


def value_of(
    name: str, column: NDArray[np.float64], selection: Selection, per_doc: int, *, reason: str, model: str, **facts: Any
) -> MetricValue:
    """A measure at one M from the documents' values, (n_documents,); ``reason`` where it is undefined."""
    n_queries = sum(min(len(queries), per_doc) for queries in selection.queries)
    return aggregate(
        name, column, n_queries=n_queries, per_doc=per_doc, sampled_from=selection.sampled_from, reason=reason,
        model=model, **facts,
    )  # fmt: skip


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
