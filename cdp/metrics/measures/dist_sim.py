"""Dist-Sim: whether synthetic queries mean what human queries of the same document mean (sec:appendix_qd)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import ModelError
from cdp.metrics.measures import Measure, Queries, aligned

MEASURE = Measure(
    name="dist_sim",
    order=10,
    title="Dist-Sim",
    better="higher",
    low=-1.0,
    high=1.0,
    help="Mean cosine over all pairs of a synthetic and a human query of a document.",
    needs="human queries, an encoder",
    model_based=True,
)

# Texts to embeddings: n texts give shape (n, dim).
Encode = Callable[[list[str]], ArrayLike]


def dist_sim(synthetic: Queries, human: Queries, encoder: Encode) -> float:
    """Dist-Sim in [−1, 1]: averaged over all pairs of a document, then over documents.

    Arguments as for ``len_sim``; each distinct query is encoded once. An embedding of zeros has cosine 0 with any.
    """
    return float(np.mean(document_dist_sims(aligned(synthetic, human), encoder)))


def document_dist_sims(pairs: Sequence[tuple[Sequence[str], Sequence[str]]], encoder: Encode) -> NDArray[np.float64]:
    """Dist-Sim of each document from its (synthetic, human) queries, both not empty: shape (n_documents,).

    The mean cosine over all pairs is the dot product of the two sides' mean unit vectors, so each distinct query is
    encoded once and no pair is formed.
    """
    documents = chain.from_iterable(pairs)
    of = embedded(chain.from_iterable(documents), encoder)
    return np.array([of(synthetic).mean(axis=0) @ of(human).mean(axis=0) for synthetic, human in pairs])


def embedded(texts: Iterable[str], encoder: Encode) -> Callable[[Sequence[str]], NDArray[np.float64]]:
    """The unit vectors, (n, dim), of any n of these texts, each of which is encoded once."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    unit = unit_vectors(encoder(list(rows)), len(rows)) if rows else np.zeros((0, 1))
    return lambda chosen: unit[list(map(rows.__getitem__, chosen))]


def unit_vectors(embeddings: ArrayLike, n: int) -> NDArray[np.float64]:
    """Embeddings of n texts scaled to length 1, zeros kept: shape (n, dim). ModelError if they are not usable."""
    values = np.asarray(embeddings, dtype=np.float64)
    if values.ndim != 2 or len(values) != n:
        raise ModelError(f"The encoder gave an array of shape {values.shape} for {n} texts.")
    if not np.isfinite(values).all():
        raise ModelError(
            "The encoder gave embeddings that are not finite.", hint="Choose another model, or full precision."
        )
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(lengths > 0, lengths, 1.0)
