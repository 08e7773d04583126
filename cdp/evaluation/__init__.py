"""How good is a retriever: running it on a benchmark, error analysis; ``ndcg`` and ``score`` of runs in dictionaries.

Importing this loads no torch. ``cdp.evaluation.evaluate`` loads it when it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdp.base.errors import ConfigError
from cdp.evaluation import measures
from cdp.evaluation.evaluate import Evaluation, evaluate_model
from cdp.evaluation.measures import Qrels, TrecRun
from cdp.retrievers.exact_search import search

__all__ = ["Evaluation", "Scores", "evaluate_model", "ndcg", "score", "search"]


@dataclass(frozen=True)
class Scores:
    """One measure over all judged queries, values in [0, 1].

    ``absent`` counts the judged queries for which the run holds nothing; they are in ``per_query`` with 0.
    """

    measure: str
    mean: float
    per_query: dict[str, float]
    absent: int


def score(run: TrecRun, qrels: Qrels, names: list[str]) -> dict[str, Scores]:
    """Several measures at once, by name (``ndcg@10``, ``recall@100`` …). Every judged query counts.

    Linear gain, log2 discount, documents of equal score in descending order of id: trec_eval's rules. The mean over no
    judged query is 0.
    """
    ranks = measures.from_run(run, qrels)
    return {
        name: Scores(
            name,
            float(values.mean()) if len(values) else 0.0,
            dict(zip(ranks.query_ids, values.tolist(), strict=True)),
            ranks.absent,
        )
        for name, values in measures.compute(ranks, names).items()
    }


def ndcg(run: TrecRun, qrels: Qrels, k: int = 10) -> Scores:
    """NDCG@k of ``run`` {query: {document: score}} against ``qrels`` {query: {document: grade}}.

    Equal to pytrec_eval-terrier's ``ndcg_cut`` for every query, ties included, except that a judged query which the run
    leaves out counts 0 instead of being left out. InputError for a score that is not a number.
    """
    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}.")
    return score(run, qrels, [f"ndcg@{k}"])[f"ndcg@{k}"]
