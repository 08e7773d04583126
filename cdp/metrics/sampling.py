"""Samples that do not need the whole set in memory: for a first look, and for the corpus scope."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TypeVar

# The corpus scope draws one query each from at most so many documents.
CORPUS_DOCUMENTS = 10_000

T = TypeVar("T")


def reservoir(items: Iterable[T], n: int, seed: int = 0) -> tuple[list[T], int]:
    """``n`` items drawn without replacement, in the order of ``items``, and how many items there were."""
    random = Random(seed)
    drawn: list[tuple[int, T]] = []
    total = 0
    for total, item in enumerate(items, start=1):
        if len(drawn) < n:
            drawn.append((total, item))
        elif (slot := random.randrange(total)) < n:
            drawn[slot] = (total, item)
    drawn.sort(key=lambda entry: entry[0])
    return [item for _, item in drawn], total


class CorpusPool:
    """One random query each from a random sample of documents, collected while the documents stream by."""

    def __init__(self, n: int = CORPUS_DOCUMENTS, seed: int = 0) -> None:
        self._n = n
        self._random = Random(seed)
        self._kept: list[str] = []
        self._seen = 0

    def add(self, queries: list[str]) -> None:
        """Offer a document's queries (at least one)."""
        self._seen += 1
        if len(self._kept) < self._n:
            self._kept.append(self._random.choice(queries))
        elif (slot := self._random.randrange(self._seen)) < self._n:
            self._kept[slot] = self._random.choice(queries)

    def drawn(self) -> list[str]:
        """The queries in random order."""
        queries = list(self._kept)
        self._random.shuffle(queries)
        return queries
