"""What was retrieved for a benchmark's queries, and how good that is. The same for every kind of retriever."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cdp.benchmarks.benchmark import Benchmark
from cdp.evaluation import measures
from cdp.evaluation.measures import from_ranking


@dataclass(frozen=True)
class Ranking:
    """What was retrieved. ``documents`` (n_queries, k) int64 holds document numbers, -1 where there is none;
    ``scores`` (n_queries, k) float32. Rows are in trec_eval's order: score, then document id, both descending."""

    documents: np.ndarray
    scores: np.ndarray


def in_trec_order(benchmark: Benchmark, documents: np.ndarray, scores: np.ndarray) -> Ranking:
    """Documents of equal score by descending id, as trec_eval reads a run, so that ranks mean what it computes."""
    documents, scores = documents.copy(), scores.copy()
    tied = (scores[:, 1:] == scores[:, :-1]) & (documents[:, 1:] >= 0)
    for row in np.flatnonzero(tied.any(axis=1)):
        ids = benchmark.document_ids
        order = sorted(
            range(documents.shape[1]),
            key=lambda j: (scores[row, j], ids[documents[row, j]] if documents[row, j] >= 0 else ""),
            reverse=True,
        )
        documents[row], scores[row] = documents[row, order], scores[row, order]
    return Ranking(documents, scores)


def judge(benchmark: Benchmark, ranking: Ranking) -> tuple[dict[str, float], dict[str, np.ndarray], int]:
    """(mean of each measure, {measure: value per query}, judged queries for which nothing was retrieved).

    NDCG takes every grade above 0 as a gain; the other measures count those from the benchmark's ``relevant_from`` on.
    """
    needed = {document for grades in benchmark.qrels.values() for document in grades}
    numbers = {document: i for i, document in enumerate(benchmark.document_ids) if document in needed}
    pairs = [
        (row, numbers.get(document, -2), grade)
        for row, query in enumerate(benchmark.query_ids)
        for document, grade in benchmark.qrels[query].items()
        if grade > 0
    ]
    query, document, grade = np.array(pairs, np.int64).reshape(-1, 3).T
    ranks = from_ranking(ranking.documents, benchmark.query_ids, query, document, grade)
    names = measures.within(ranking.documents.shape[1])
    per_query = measures.compute(ranks, names)
    if benchmark.relevant_from > 1:
        enough = grade >= benchmark.relevant_from
        strict = from_ranking(ranking.documents, benchmark.query_ids, query[enough], document[enough], grade[enough])
        per_query |= measures.compute(strict, [name for name in names if measures.parse(name)[0] != "ndcg"])
    return {name: float(values.mean()) for name, values in per_query.items()}, per_query, ranks.absent
