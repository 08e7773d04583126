"""The retrieval measures, each a function of where the relevant documents stand, all as trec_eval computes them.

``ndcg@10`` is the measure; ``recall@k``, ``mrr@k``, ``map@k`` and ``p@k`` stand beside it. Every judged query counts,
with 0 where nothing relevant was retrieved. Values are in [0, 1].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from cdp.base.errors import ConfigError
from cdp.evaluation.relevant_ranks import RelevantRanks

REPORTED = ("ndcg@10", "mrr@10", "p@1", "recall@10", "recall@100", "map@100")
"""What an evaluation reports, as far as its ``top_k`` reaches."""


def _sum_by_query(ranks: RelevantRanks, values: np.ndarray) -> np.ndarray:
    return np.bincount(ranks.query, weights=values, minlength=ranks.n_queries)


def _found(ranks: RelevantRanks, k: int) -> np.ndarray:
    return (ranks.rank > 0) & (ranks.rank <= k)


def _divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, and 0 where b is 0: a query without relevant documents scores 0, as in trec_eval."""
    return np.divide(a, b, out=np.zeros(len(b)), where=b > 0)


def _position_within_query(ranks: RelevantRanks, order: np.ndarray) -> np.ndarray:
    """For entries in ``order``, which must group queries: the position of each within its query, from 1."""
    query = ranks.query[order]
    starts = np.searchsorted(query, np.arange(ranks.n_queries))
    return np.arange(1, len(order) + 1) - starts[query]


def ndcg(ranks: RelevantRanks, k: int) -> np.ndarray:
    """Normalised discounted cumulative gain: Σ grade / log2(rank + 1) over ranks ≤ k, over its highest value.

    Järvelin & Kekäläinen 2002, with the linear gain of trec_eval's ``ndcg_cut``. The paper's only measure.
    """
    hit = _found(ranks, k)
    gained = _sum_by_query(ranks, np.where(hit, ranks.grade / np.log2(np.maximum(ranks.rank, 1) + 1), 0.0))
    order = np.lexsort((-ranks.grade, ranks.query))
    position = _position_within_query(ranks, order)
    ideal = np.where(position <= k, ranks.grade[order] / np.log2(position + 1), 0.0)
    return _divided(gained, np.bincount(ranks.query[order], weights=ideal, minlength=ranks.n_queries))


def recall(ranks: RelevantRanks, k: int) -> np.ndarray:
    """Share of the relevant documents among the first k."""
    return _divided(_sum_by_query(ranks, _found(ranks, k)), _sum_by_query(ranks, np.ones(len(ranks.query))))


def mrr(ranks: RelevantRanks, k: int) -> np.ndarray:
    """1 / rank of the first relevant document, 0 if it stands below k."""
    values = np.zeros(ranks.n_queries)
    hit = _found(ranks, k)
    np.maximum.at(values, ranks.query[hit], 1.0 / ranks.rank[hit])
    return values


def average_precision(ranks: RelevantRanks, k: int) -> np.ndarray:
    """Mean over the relevant documents of the precision at their rank, 0 for those below k."""
    hits = np.flatnonzero(_found(ranks, k))
    order = hits[np.lexsort((ranks.rank[hits], ranks.query[hits]))]
    precision = _position_within_query(ranks, order) / ranks.rank[order]
    total = np.bincount(ranks.query[order], weights=precision, minlength=ranks.n_queries)
    return _divided(total, _sum_by_query(ranks, np.ones(len(ranks.query))))


def precision(ranks: RelevantRanks, k: int) -> np.ndarray:
    """Share of relevant documents among the first k places, whether or not k documents were retrieved."""
    return _sum_by_query(ranks, _found(ranks, k)) / k


KINDS: dict[str, Callable[[RelevantRanks, int], np.ndarray]] = {
    "ndcg": ndcg,
    "recall": recall,
    "mrr": mrr,
    "map": average_precision,
    "p": precision,
}

_NAME = re.compile(r"([a-z]+)@([1-9][0-9]{0,8})")


def parse(name: str) -> tuple[str, int]:
    """``"ndcg@10"`` as ("ndcg", 10); ConfigError for a measure that does not exist."""
    match = _NAME.fullmatch(name.strip().lower())
    if match is None or match[1] not in KINDS:
        raise ConfigError(f"{name!r} is not a measure.", hint=f"There is: {', '.join(f'{k}@10' for k in KINDS)}.")
    return match[1], int(match[2])


def compute(ranks: RelevantRanks, names: Sequence[str]) -> dict[str, np.ndarray]:
    """{measure: float64 array of shape (n_queries,), in the order of ``ranks.query_ids``}."""
    parsed = {name: parse(name) for name in names}
    return {name: KINDS[kind](ranks, k) for name, (kind, k) in parsed.items()}


def within(top_k: int, names: Sequence[str] = REPORTED) -> list[str]:
    """Those of the measures that a run of ``top_k`` documents per query can tell."""
    return [name for name in names if parse(name)[1] <= top_k]
