"""The documents that may still be among the best k of each query, and the scores that others have to reach for that.

Scores come as intervals: the true one lies between ``lower`` and ``upper``. Once k lower ends are known, a document
whose upper end is below the least of them is out. Filled from several threads at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

AT_ONCE = 1 << 12
"""Fewer new intervals than this are not worth sorting in."""

SLOTS = 4
"""New intervals per query that are sorted in at once, in k."""

SPARE = 1 << 20
"""So many pairs may wait beside a few for each query and place before those that are out are dropped."""

Exact = Callable[[int, np.ndarray], np.ndarray]
"""The scores of some documents for a query, by their numbers, as a search returns them."""

DOCUMENT_BITS = 40
"""A pair is one integer, which sorts several times as fast as two; room for 2⁴⁰ documents."""


class Candidates:
    """For ``n`` queries, 65,536 at most. ``kth`` (n,): the k-th highest lower end seen, -inf where there are fewer.

    Where so many documents score alike that no interval tells them apart, all of one text for instance, ``exact`` does:
    what is held does not grow with the number of documents.
    """

    def __init__(self, n: int, k: int, exact: Exact) -> None:
        self.n, self.k, self._exact = n, k, exact
        self.kth = np.full(n, -np.inf)
        self.complete = False
        self._bounds = np.full((n, k), -np.inf)  # the k highest lower ends, in no order
        self._pool: list[tuple[np.ndarray, np.ndarray]] = []  # query << DOCUMENT_BITS | document, upper end
        self._pooled = 0
        self._fresh: list[tuple[np.ndarray, np.ndarray]] = []  # query, lower end: not in _bounds yet
        self._waiting = 0
        self._lock = threading.Lock()
        self._settled = 0

    def raise_by(self, lower: np.ndarray, settled: int | None = None) -> None:
        """Lower ends (n, any number) of documents that no earlier call was told of; -inf stands for none. They are left
        out if ``settled`` is not the present number: the bounds then know these documents."""
        with self._lock:
            if settled is not None and settled != self._settled:
                return
            both = np.concatenate([self._bounds, lower], axis=1)
            self._bounds = np.partition(both, -self.k, axis=1)[:, -self.k :]
            # partition puts the k-th highest there. A floor that held once holds for ever.
            self.kth = np.maximum(self.kth, self._bounds[:, 0])
            self.complete = bool((self.kth > -np.inf).all())

    def add(
        self, query: np.ndarray, document: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, counted: bool
    ) -> None:
        """Candidates by (query, document). ``counted``: their lower ends have gone through ``raise_by``."""
        if not len(query):
            return
        fresh: list[tuple[np.ndarray, np.ndarray]] = []
        with self._lock:
            self._pool.append((query << DOCUMENT_BITS | document, upper))
            self._pooled += len(query)
            if not counted:
                self._fresh.append((query, lower))
                self._waiting += len(query)
            # A floor that is a little too low lets few more through: raising it when half of k are new costs little.
            if self._waiting > max(AT_ONCE, self.n * self.k // 2):
                fresh, self._fresh, self._waiting = self._fresh, [], 0
            settled = self._settled
        if fresh:
            self._raise(fresh, settled)
        with self._lock:
            limit = 4 * self.k * self.n + SPARE
            if self._pooled > limit:
                self._prune()
                if self._pooled > limit // 2:
                    self._settle()

    def remaining(self) -> tuple[np.ndarray, np.ndarray]:
        """(query, document) of every candidate that is left, in this order."""
        self._raise(self._fresh, self._settled)
        self._fresh, self._waiting = [], 0
        self._prune()
        pairs = np.sort(self._pool[0][0])
        return pairs >> DOCUMENT_BITS, pairs & ((1 << DOCUMENT_BITS) - 1)

    def _raise(self, fresh: list[tuple[np.ndarray, np.ndarray]], settled: int) -> None:
        """Raise the bounds by new lower ends. A bound that is not told of every one is lower, and holds as well: so
        many for one query are left out that the table stays small."""
        if not fresh:
            return
        query, lower = (np.concatenate(column) for column in zip(*fresh, strict=True))
        higher = lower > self.kth[query]
        query, lower = query[higher].astype(np.uint16), lower[higher]
        order = query.argsort(kind="stable")  # of so short integers a radix sort, in linear time
        query, lower = query[order], lower[order]
        slot = np.arange(len(query)) - np.searchsorted(query, np.arange(self.n, dtype=np.uint16))[query]
        within = slot < SLOTS * self.k
        table = np.full((self.n, int(slot[within].max(initial=0)) + 1), -np.inf)
        table[query[within], slot[within]] = lower[within]
        self.raise_by(table, settled)

    def _settle(self) -> None:
        """Score every candidate, and keep the best k of each query, of equal ones those with the lowest numbers."""
        pairs = np.sort(self._pool[0][0])
        starts = np.searchsorted(pairs, np.arange(self.n + 1) << DOCUMENT_BITS)
        self._bounds = np.full((self.n, self.k), -np.inf)
        best: list[tuple[np.ndarray, np.ndarray]] = []
        for query in np.flatnonzero(np.diff(starts)):
            mine = pairs[starts[query] : starts[query + 1]]
            scores = self._exact(int(query), mine & ((1 << DOCUMENT_BITS) - 1))
            first = np.argsort(-scores, kind="stable")[: self.k]  # they are in the order of their documents
            mine, scores = mine[first], scores[first]
            self._bounds[query, : len(scores)] = np.nextafter(scores, np.float32(-np.inf))  # each is a rounded score
            best.append((mine, np.nextafter(scores, np.float32(np.inf)).astype(np.float64)))
        self._pool, self._pooled = best, sum(len(mine) for mine, _ in best)
        self.kth = np.maximum(self.kth, self._bounds.min(axis=1))
        self._fresh, self._waiting, self._settled = [], 0, self._settled + 1

    def _prune(self) -> None:
        """Forget documents whose score is below the k-th best even in the best case."""
        if self._pool:
            pairs, upper = (np.concatenate(column) for column in zip(*self._pool, strict=True))
            keep = upper >= self.kth[pairs >> DOCUMENT_BITS]
            self._pool = [(pairs[keep], upper[keep])]
        else:
            self._pool = [(np.empty(0, np.int64), np.empty(0))]
        self._pooled = len(self._pool[0][0])
