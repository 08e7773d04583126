"""Embedding diversity: how far the queries of a document lie from each other in meaning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from cdp.metrics.measures import Measure
from cdp.metrics.measures.dist_sim import Encode, embedded

MEASURE = Measure(
    name="embedding_diversity",
    order=60,
    title="Embedding diversity",
    better="higher",
    low=0.0,
    high=2.0,
    help="1 minus the mean cosine over all pairs of queries of a document. It compares meaning, not words, so no "
    "tokenisation decides it.",
    needs="an encoder",
    model_based=True,
)


def embedding_diversity(queries: Sequence[str], encoder: Encode) -> float:
    """1 − mean pairwise cosine of one document's queries, in [0, 2]; NaN for fewer than two."""
    return float(document_diversities([queries], encoder)[0])


def document_diversities(documents: Sequence[Sequence[str]], encoder: Encode) -> NDArray[np.float64]:
    """Embedding diversity of each document, shape (n_documents,); NaN where there are not two queries.

    The cosines of all pairs of n unit vectors sum to (|Σu|² − n) / 2, so no pair is formed and each distinct query is
    encoded once. An embedding of zeros has cosine 0 with any.
    """
    of = embedded(chain.from_iterable(documents), encoder)

    def diversity(texts: Sequence[str]) -> float:
        n = len(texts)
        if n < 2:
            return float("nan")
        chosen = of(texts)
        total = chosen.sum(axis=0)
        return float(1 - (total @ total - (chosen**2).sum()) / (n * (n - 1)))

    return np.array(list(map(diversity, documents)))
