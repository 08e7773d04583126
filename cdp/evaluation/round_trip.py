"""Round-trip rank: at which rank a query finds its own document among the whole corpus.

A query that does not find its own document is of little use as a training pair: it is too vague, about something else,
or no query at all. The consistency filter of Promptagator (Dai et al. 2023, https://arxiv.org/abs/2209.11755) keeps a
query where its document comes first; GPL and InPars-v2 judge by a cross-encoder.

A rank counts the documents that score strictly higher, so a copy of the document does not push it down, and neither
does another document that the query was written for. It is looked
for among the first ``DEPTH``; 0 stands for a query that does not find its document there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.text import Progress, silent
from cdp.evaluation.evaluate import encode_both, protocol_for, retrieve
from cdp.retrievers import bm25
from cdp.retrievers.encode import EmbeddingStore

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DEPTH = 100
QUERIES_AT_ONCE = 2000


def by_bm25(
    queries: Sequence[str],
    documents: Sequence[str],
    own: NDArray[np.int64],
    language: str = "en",
    *,
    others: NDArray[np.int64] | None = None,
    watch: Progress = silent,
) -> NDArray[np.int32]:
    """Ranks (n_queries,) by BM25. ``own`` (n_queries,) is the index of each query's document, -1 for none; ``others``
    (n_queries, k) are further documents that it was written for."""
    index = bm25.index(documents, language, watch=watch)
    ranks = np.zeros(len(queries), np.int32)
    depth = min(DEPTH, len(documents))
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        watch("searching", start, len(queries))
        part = slice(start, start + QUERIES_AT_ONCE)
        found = bm25.rank(index, queries[part], depth, language=language)
        ranks[part] = ranks_of(*found, own[part], None if others is None else others[part])

    return ranks


def by_model(
    model: SentenceTransformer, queries: Sequence[str], documents: Sequence[str], own: NDArray[np.int64],
    precision: str, *, store: EmbeddingStore, model_hash: str, others: NDArray[np.int64] | None = None,
    watch: Progress = silent,
) -> NDArray[np.int32]:  # fmt: skip
    """The same by a dense retriever, with its own prompts and similarity. The embeddings are kept in ``store``."""
    encoded = encode_both(
        model, queries, documents, protocol_for(model), precision, store=store, model_hash=model_hash, watch=watch
    )
    scores, found, *_ = retrieve(model, encoded, queries, documents, min(DEPTH, len(documents)), watch=watch)
    return ranks_of(scores, found, own, others)


def ranks_of(
    scores: Any, documents: Any, own: NDArray[np.int64], others: NDArray[np.int64] | None = None
) -> NDArray[np.int32]:
    """The rank of each query's own document from a ranking, (n_queries, depth) best first; 0 where it is not there."""
    mine = (documents == own[:, None]) & (own[:, None] >= 0)
    score = np.where(mine, scores, -np.inf).max(axis=1, initial=-np.inf)
    above = scores > score[:, None]
    for other in () if others is None else others.T:
        above &= documents != other[:, None]
    ranks = 1 + above.sum(axis=1)
    return np.where(mine.any(axis=1), ranks, 0).astype(np.int32)


def within(ranks: NDArray[np.int32], k: int) -> NDArray[np.bool_]:
    """(n,): which queries find their document among the first ``k``."""
    return np.asarray((ranks > 0) & (ranks <= k))
