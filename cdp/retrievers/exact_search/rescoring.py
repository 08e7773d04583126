"""The candidates that the fast products left, scored in float64, and the best k of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from cdp.retrievers.rows import Rows

GATHERED = 1 << 19
"""Numbers gathered at once: 2 MB of float32, which stay in a processor's cache."""


class Rescoring:
    """Writes the best of ``pairs`` (query, document), in this order, into ``scores`` and ``indices``, (n, k) each."""

    def __init__(
        self,
        queries: np.ndarray,
        pairs: tuple[np.ndarray, np.ndarray],
        rows: Rows,
        scores: np.ndarray,
        indices: np.ndarray,
    ) -> None:
        self.queries, self.rows, self.scores, self.indices = queries, rows, scores, indices
        query, self.document = pairs
        self.starts = np.searchsorted(query, np.arange(len(queries) + 1))

    def tasks(self) -> Iterator[Callable[[], None]]:
        """The work in parts that may be done at the same time."""
        step = max(1, GATHERED // max(1, self.queries.shape[1]))
        first = 0
        while first < len(self.queries):
            reach = int(np.searchsorted(self.starts, self.starts[first] + step, side="right")) - 1
            last = min(max(first + 1, reach), len(self.queries))
            yield partial(self._write, first, last)
            first = last

    def _write(self, first: int, last: int) -> None:
        base = self.starts[first]
        gathered = self.rows.take(self.document[base : self.starts[last]])
        for row in range(first, last):
            low, high = self.starts[row], self.starts[row + 1]
            exact = scored(gathered[low - base : high - base], self.queries[row])
            order = np.argsort(-exact, kind="stable")[: self.scores.shape[1]]  # equal scores stay ordered by document
            self.scores[row, : len(order)] = exact[order]
            self.indices[row, : len(order)] = self.document[low:high][order]


def scored_by_number(query: np.ndarray, numbers: np.ndarray, rows: Rows) -> np.ndarray:
    """The scores (float32) of the rows of ``numbers``, which ascend, for one query; a few rows in memory at a time."""
    step = max(1, GATHERED // max(1, len(query)))
    parts = [scored(rows.take(numbers[at : at + step]), query) for at in range(0, len(numbers), step)]
    return np.concatenate(parts) if parts else np.empty(0, np.float32)


def scored(documents: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Dot products in float64, rounded to float32. Each is summed in one fixed order, so equal documents score
    equally."""
    exact: np.ndarray = np.einsum("ij,j->i", documents.astype(np.float64), query.astype(np.float64))
    return exact.astype(np.float32)
