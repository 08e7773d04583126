"""Multi-query conditions of one query set: the first M queries of each document, and how a fixed number of pairs can be
split into documents and queries per document.

Conditions are nested: fewer queries per document are the first ones of more, fewer documents the first ones too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError

MOST_PER_DOC = 20


@dataclass(frozen=True, slots=True)
class Split:
    """``documents`` × ``per_doc`` pairs; ``problem`` says why it is not possible, empty where it is."""

    documents: int
    per_doc: int
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.documents:,} × {self.per_doc}"


def pairs_of(counts: NDArray[np.int64], per_doc: int | None = None, max_documents: int | None = None) -> int:
    """How many pairs the first ``per_doc`` queries of the first ``max_documents`` documents are.

    ``counts`` (n_documents,) are the queries of each document, in order, none of them zero.
    """
    sizes = counts[:max_documents]
    return int((sizes if per_doc is None else np.minimum(sizes, per_doc)).sum())


def split(counts: NDArray[np.int64], pairs: int, per_doc: int) -> Split:
    """``pairs`` pairs as the first ``pairs / per_doc`` documents with ``per_doc`` queries each, if that is possible."""
    documents, rest = divmod(pairs, per_doc)
    if rest:
        return Split(documents, per_doc, f"{pairs:,} pairs cannot be shared out by {per_doc} queries per document")
    if documents < 2:
        noun = "document has" if documents == 1 else "documents have"
        return Split(documents, per_doc, f"{documents} {noun} no other document to learn from")
    if documents > len(counts):
        noun = "document" if len(counts) == 1 else "documents"
        return Split(documents, per_doc, f"it takes {documents:,} documents, and there are {len(counts):,} {noun}")
    short = int((counts[:documents] < per_doc).sum())
    if short:
        noun = "has" if short == 1 else "have"
        return Split(
            documents, per_doc, f"{short:,} of the first {documents:,} documents {noun} fewer than {per_doc} queries"
        )
    return Split(documents, per_doc)


def splits(counts: NDArray[np.int64], pairs: int) -> list[Split]:
    """Every Q/Doc from 1 to 20 at this number of pairs, possible or not; those that ``pairs`` is a multiple of."""
    return [split(counts, pairs, m) for m in range(1, MOST_PER_DOC + 1) if pairs % m == 0]


def suggested(counts: NDArray[np.int64]) -> int:
    """A number of pairs to begin with, possible with one query per document: the paper's 8,000 where it can be split in
    two ways, else a large round number that can be split in three, two or one."""
    # So many documents from the first one on have at least M queries.
    leading = [int(np.argmax(np.append(counts, 0) < m)) for m in range(1, MOST_PER_DOC + 1)]

    def ways(pairs: int) -> int:
        return sum(pairs % m == 0 and 2 <= pairs // m <= n for m, n in enumerate(leading, start=1))

    if ways(8000) > 1:
        return 8000
    for enough in (3, 2, 1):
        for unit in (1000, 100, 10, 1):
            for pairs in range(len(counts) // unit * unit, 0, -unit)[:1000]:
                if ways(pairs) >= enough:
                    return pairs
    return 2


def chosen(counts: NDArray[np.int64], pairs: int, per_doc: int) -> Split:
    """The split of this Q/Doc. InputError where it is impossible, naming those that are possible."""
    result = split(counts, pairs, per_doc)
    if result.problem:
        possible = ", ".join(str(s) for s in splits(counts, pairs) if not s.problem)
        raise InputError(
            f"{pairs:,} pairs at Q/Doc {per_doc} are not possible: {result.problem}.",
            hint=f"Possible at {pairs:,} pairs: {possible}."
            if possible
            else f"No Q/Doc gives {pairs:,} pairs here: the set has {int(counts.sum()):,} queries.",
        )
    return result
