"""The query pairs of a whole set, each distinct pair once, in the order in which they are scored best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cdp.base.workspace import sha256_text
from cdp.metrics.measures.paraphrase_ratio import Pair, document_ratios

# Corpus scope: so many pairs of queries of different documents are scored at most, no query in two of them.
CORPUS_PAIRS = 1000


@dataclass(frozen=True)
class PairTable:
    """Distinct pairs to be scored, and which of them each document's pairs are.

    ``left`` and ``right`` (n_distinct,) index ``texts``. The arrays of length n_pairs have one entry per pair of a
    document, in the order of ``itertools.combinations``: ``distinct`` is its row among the distinct pairs,
    ``document`` the document's number, ``later`` the position of its later query, so that the pair belongs to the
    set at Q/Doc = M if ``later`` < M. ``corpus`` (n_corpus_pairs,) are rows of pairs across documents.
    """

    texts: list[str]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    distinct: NDArray[np.int64]
    document: NDArray[np.int64]
    later: NDArray[np.int64]
    corpus: NDArray[np.int64]
    n_documents: int

    @classmethod
    def of(cls, documents: Sequence[Sequence[str]], pool: Sequence[str] = (), *, by_length: bool) -> PairTable:
        """The pairs within each document and, from ``pool``, of queries of different documents.

        ``by_length`` puts long pairs first and equally long ones together, across documents; otherwise pairs stay in
        the order of the documents.
        """
        rows: dict[str, int] = {}

        def index(queries: Sequence[str]) -> NDArray[np.int64]:
            return np.array([rows.setdefault(query, len(rows)) for query in queries], dtype=np.int64)

        parts: list[tuple[NDArray[np.int64], ...]] = []
        for number, queries in enumerate(documents):
            if len(queries) > 1:
                first, second = _combinations(len(queries))
                ids = index(queries)
                parts.append((ids[first], ids[second], np.full(len(first), number), second))
        drawn = index(pool[: 2 * min(CORPUS_PAIRS, len(pool) // 2)])
        parts.append((drawn[::2], drawn[1::2], np.full(len(drawn) // 2, -1), np.zeros(len(drawn) // 2, np.int64)))
        left, right, document, later = (np.concatenate(column) for column in zip(*parts, strict=True))
        texts = list(rows)
        n = max(1, len(texts))
        _, first_seen, inverse = np.unique(
            np.minimum(left, right) * n + np.maximum(left, right), return_index=True, return_inverse=True
        )
        order = _by_length(texts, left[first_seen], right[first_seen]) if by_length else np.argsort(first_seen)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        row, within = rank[inverse], document >= 0
        return cls(
            texts=texts,
            left=left[first_seen][order],
            right=right[first_seen][order],
            distinct=row[within],
            document=document[within],
            later=later[within],
            corpus=row[~within],
            n_documents=len(documents),
        )

    def __len__(self) -> int:
        return len(self.left)

    def pairs(self, start: int, stop: int) -> list[Pair]:
        """The distinct pairs from ``start`` to ``stop``, as texts."""
        window = slice(start, stop)
        return [(self.texts[a], self.texts[b]) for a, b in zip(self.left[window], self.right[window], strict=True)]

    def fingerprint(self) -> str:
        """Equal for equal pairs in equal order: scores made for one table fit the other."""
        return sha256_text(*self.texts, self.left.tobytes().hex(), self.right.tobytes().hex())

    def ratios(self, scores: NDArray[np.float64], threshold: float, per_doc: int | None = None) -> NDArray[np.float64]:
        """Share of pairs above the threshold among each document's first ``per_doc`` queries (None: all).

        Shape (n_documents,), NaN for a document without pairs; ``scores`` has one entry per distinct pair, NaN for one
        that could not be scored, which does not count.
        """
        counted = ~np.isnan(scores[self.distinct])
        if per_doc is not None:
            counted &= self.later < per_doc
        above = scores[self.distinct[counted]] > threshold
        return document_ratios(above, self.document[counted], self.n_documents)

    def n_pairs(self, per_doc: int) -> int:
        """Pairs within documents at Q/Doc = ``per_doc``."""
        return int((self.later < per_doc).sum())


@lru_cache(maxsize=64)
def _combinations(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first, second = np.triu_indices(n, 1)
    return first.astype(np.int64), second.astype(np.int64)


def _by_length(texts: list[str], left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Longest first, so that a batch too large for the memory fails at once and not at the end."""
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    return np.argsort(-(lengths[left] + lengths[right]), kind="stable")
