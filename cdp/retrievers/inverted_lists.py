"""Exact search by weights of words (sparse retrievers, SPLADE): inverted lists in blocks, best documents first.

A text is a list of pairs (word, weight): the numbers of the words of a vocabulary that it is about, each once. The
score of a document is the dot product, computed in float64 and rounded to float32. Only documents that share a word
with the query are looked at; one whose score is not above 0 is not found. Documents of equal score stand in ascending
order of their index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from cdp.base.errors import ConfigError
from cdp.base.text import PhaseProgress, silent
from cdp.retrievers.late_interaction import TokenVectors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Documents of one block of lists, and queries asked of it at once: their scores (8 MB) are looked at together.
DOCUMENTS_AT_ONCE, QUERIES_AT_ONCE = 4096, 256


def inverted_lists(documents: TokenVectors) -> Iterator[csr_matrix]:
    """Yield blocks of inverted lists, (words, documents) each: the documents' weights by word, as many words as occur.

    ``documents`` hold a row (word, weight) for each word of a text.
    """
    for start in range(0, len(documents), DOCUMENTS_AT_ONCE):
        yield _weights(documents, start, min(start + DOCUMENTS_AT_ONCE, len(documents))).T.tocsr()


def search_words(
    queries: TokenVectors, lists: Iterable[csr_matrix], k: int, *, progress: PhaseProgress = silent, total: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best documents of each query, best first: (scores, indices), each (n_queries, k).

    float32 and int64; where a query has fewer than k documents, the last places hold -inf and -1. ``lists`` as
    ``inverted_lists`` yields them. ``progress`` hears the documents searched so far, of ``total``, and may raise.
    """
    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}.")

    starts = range(0, len(queries), QUERIES_AT_ONCE)
    asked = [_weights(queries, start, min(start + QUERIES_AT_ONCE, len(queries))) for start in starts]
    best = [(np.full((part.shape[0], k), -np.inf, np.float32), np.full((part.shape[0], k), -1)) for part in asked]

    first = 0
    for block in lists:
        best = [_better(part, block, first, *found) for part, found in zip(asked, best, strict=True)]
        first += block.shape[1]
        progress(first, max(total, first))

    scores, numbers = zip(*best, strict=True) if best else ([np.empty((0, k), np.float32)], [np.empty((0, k), int)])
    return np.concatenate(scores), np.concatenate(numbers)


def _better(
    asked: csr_matrix, block: csr_matrix, first: int, scores: np.ndarray, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best of those found so far and of a block, whose documents are numbered from ``first``."""
    words = min(asked.shape[1], block.shape[0])  # a word that the other side lacks adds nothing
    found = (asked[:, :words] @ block[:words]).toarray().astype(np.float32)
    found[found <= 0] = -np.inf

    k = scores.shape[1]
    both = np.concatenate([scores, found], axis=1)
    order = np.argsort(-both, axis=1, kind="stable")[:, :k]  # the earlier of equal ones comes first
    own = np.broadcast_to(np.arange(first, first + found.shape[1]), found.shape)
    chosen = np.take_along_axis(both, order, axis=1)
    named = np.take_along_axis(np.concatenate([numbers, own], axis=1), order, axis=1)

    return chosen, np.where(np.isfinite(chosen), named, -1)


def _weights(texts: TokenVectors, start: int, stop: int) -> csr_matrix:
    """The weights of the texts ``start`` … stop-1: float64, (texts, words)."""
    from scipy.sparse import csr_matrix

    pairs = texts.of(start, stop)
    words = pairs[:, 0].astype(np.int32)
    bounds = texts.starts[start : stop + 1] - texts.starts[start]

    return csr_matrix((pairs[:, 1].astype(np.float64), words, bounds), (stop - start, int(words.max(initial=-1)) + 1))
