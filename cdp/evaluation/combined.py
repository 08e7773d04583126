"""The strong baselines and their names: hybrid (fused with BM25) and reranked (by a cross-encoder); depths.

Both are made from a finished ranking, so a hybrid costs one more BM25 search and a reranking no further search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from cdp.base.condition import HYBRID
from cdp.base.text import PhaseProgress, condition_name, silent
from cdp.benchmarks.benchmark import Benchmark
from cdp.evaluation.evaluate import INDEX_BYTES, QUERY_MS, Encoded, Evaluation, Ranking, in_trec_order, judge
from cdp.retrievers import late_interaction
from cdp.retrievers.resolve import CROSS_ENCODER

# Cormack, Clarke, Buettcher: Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods, SIGIR
# 2009, section 2: fixed at 60 during a pilot, and not tuned since.
FUSION_K = 60

# Documents of each query that a cross-encoder reads, and that late interaction scores.
RERANK_DEPTH, MAXSIM_DEPTH = 50, 100

RERANKED = "reranked"

# Scores (query, document) pairs: float64 of shape (n_pairs,), higher is better.
PairScores = Callable[[Sequence[tuple[str, str]]], np.ndarray]

# Pairs scored between two looks at progress and stop.
PAIRS_AT_ONCE = 1000


def retriever_id(retriever: str, hybrid: bool, rerank: str) -> str:
    """The id under which results are kept: ``minilm``, ``hybrid:minilm``, ``reranked:hybrid:minilm:CROSS-ENCODER``."""
    named = f"{HYBRID}:{retriever}" if hybrid else retriever
    return f"{RERANKED}:{named}:{rerank}" if rerank else named


def reranked_parts(named: str) -> tuple[str, str] | None:
    """(retriever that finds candidates, retriever that orders them) of ``reranked:bm25:minilm-multi``; None for a name
    of another form."""
    prefix, _, parts = named.strip().partition(":")
    first, _, second = parts.rpartition(":")
    return (first, second) if prefix == RERANKED and first and second else None


def reranked_title(first: str, second: str) -> str:
    """The titles of both as one: ``BM25, its first 100 by minilm-multi (late interaction)``."""
    return f"{first}, its first {MAXSIM_DEPTH} by {second}"


def title(name: str, hybrid: bool, rerank: str) -> str:
    """A retriever's name with what is done to its ranking: ``minilm · hybrid · reranked``.

    What reranks is named unless it is the usual cross-encoder: ``BM25 · reranked by minilm-multi``.
    """
    reranked = RERANKED if rerank else ""
    if rerank not in ("", CROSS_ENCODER):
        reranked = f"{RERANKED} by {PurePath(rerank).name}"

    return condition_name(name, "", 0, HYBRID * hybrid, reranked)


def settings_of(settings: Mapping[str, Any]) -> tuple[bool, str]:
    """(hybrid, rerank) of an evaluation's settings; earlier results have neither."""
    return bool(settings.get("hybrid")), str(settings.get("rerank") or "")


def fuse(rankings: Sequence[np.ndarray], document_ids: Sequence[str], top_k: int) -> Ranking:
    """Reciprocal rank fusion: each document scores Σ 1 / (60 + rank), ranks from 1, over the rankings that hold it.

    Each ranking is (n_queries, depth) int64 of document numbers, the best first, -1 where there is none; a document
    below the depth adds nothing. Equal scores go by descending document id, as trec_eval orders a run.
    """
    n_queries = len(rankings[0])
    documents = np.full((n_queries, top_k), -1, np.int64)
    scores = np.full((n_queries, top_k), -np.inf, np.float32)
    for row in range(n_queries):
        sums: dict[int, float] = {}
        for ranking in rankings:
            for rank, number in enumerate(ranking[row].tolist(), start=1):
                if number >= 0:
                    sums[number] = sums.get(number, 0.0) + 1 / (FUSION_K + rank)

        # In single precision, as a run is kept and trec_eval reads it: what is equal there is a tie here.
        single = dict(zip(sums, np.fromiter(sums.values(), np.float32, len(sums)).tolist(), strict=True))
        best = sorted(single, key=lambda number: (single[number], document_ids[number]), reverse=True)[:top_k]
        documents[row, : len(best)], scores[row, : len(best)] = best, [single[number] for number in best]

    return Ranking(documents, scores)


# The shares of the dense scores that are tried on dev.
WEIGHTS = tuple(i / 10 for i in range(11))


def best_weight(dev: Benchmark, dense: Evaluation, lexical: Evaluation) -> tuple[float, float]:
    """Return the dense scores' share in a weighted fusion that is best on dev, and its NDCG@10 there in [0, 1].

    Of equal ones the share nearest to a half is taken.
    """
    scored = []
    for weight, mixed in _mixed(dev, dense, lexical, WEIGHTS):
        means, _, _ = judge(dev, mixed)
        scored.append((means["ndcg@10"], weight))

    score, weight = max(scored, key=lambda pair: (round(pair[0], 9), -abs(pair[1] - 0.5)))
    return weight, score


def weighted(benchmark: Benchmark, dense: Evaluation, lexical: Evaluation, weight: float) -> Evaluation:
    """Fuse a retriever's evaluation with BM25's by their scores; ``weight`` is the dense scores' share."""
    ((_, ranking),) = _mixed(benchmark, dense, lexical, [weight])
    return _of_both(benchmark, dense, lexical, ranking, {"fusion_weight": weight})


def _mixed(
    benchmark: Benchmark, dense: Evaluation, lexical: Evaluation, weights: Sequence[float]
) -> list[tuple[float, Ranking]]:
    """Return (weight, ranking) of convex combinations of both scores, each scaled to [0, 1] for every query.

    A score's least value is the lowest that there can be (-1 for a cosine, 0 for BM25), not the lowest retrieved, and
    what one ranking lacks has that value there (Bruch, Gai and Ingber: An Analysis of Fusion Functions for Hybrid
    Retrieval, TOIS 2023, TM2C2). Of dot products the least is the lowest retrieved.
    """
    cosine = dense.protocol.similarity == "cosine"
    n_queries, depth = dense.ranking.documents.shape
    made = [
        Ranking(np.full((n_queries, depth), -1, np.int64), np.full((n_queries, depth), -np.inf, np.float32))
        for _ in weights
    ]
    for row in range(n_queries):
        by_meaning = _scaled(dense.ranking, row, -1.0 if cosine else None)
        by_words = _scaled(lexical.ranking, row, 0.0)
        numbers = np.union1d(by_meaning[0], by_words[0])
        columns = np.zeros((2, len(numbers)))
        for column, (found, values) in zip(columns, (by_meaning, by_words), strict=True):
            column[np.searchsorted(numbers, found)] = values

        for weight, ranking in zip(weights, made, strict=True):
            scores = (weight * columns[0] + (1 - weight) * columns[1]).astype(np.float32)
            best = np.argsort(-scores, kind="stable")[:depth]
            ranking.documents[row, : len(best)], ranking.scores[row, : len(best)] = numbers[best], scores[best]
    ordered = (in_trec_order(benchmark, ranking.documents, ranking.scores) for ranking in made)
    return list(zip(weights, ordered, strict=True))


def _scaled(ranking: Ranking, row: int, least: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the document numbers of a query and their scores scaled to [0, 1]."""
    there = ranking.documents[row] >= 0
    numbers, scores = ranking.documents[row][there], ranking.scores[row][there].astype(np.float64)
    if not len(scores):
        return numbers, scores
    low = scores.min() if least is None else least
    width = scores.max() - low
    return numbers, (scores - low) / width if width > 0 else np.ones(len(scores))


def hybrid(benchmark: Benchmark, dense: Evaluation, lexical: Evaluation) -> Evaluation:
    """Fuse a retriever's evaluation with BM25's on the same benchmark, each as deep as it was searched."""
    rankings = dense.ranking.documents, lexical.ranking.documents
    fused = fuse(rankings, benchmark.document_ids, rankings[0].shape[1])
    return _of_both(benchmark, dense, lexical, fused, {"fusion_k": FUSION_K})


def _of_both(
    benchmark: Benchmark, dense: Evaluation, lexical: Evaluation, fused: Ranking, settings: Mapping[str, Any]
) -> Evaluation:
    """The retriever's evaluation with the fused ranking, and with what both indexes cost."""
    cost = {name: dense.counts.get(name, 0) + lexical.counts.get(name, 0) for name in (INDEX_BYTES, QUERY_MS)}
    first = replace(dense, counts={**dense.counts, **cost})

    depth = fused.documents.shape[1]
    settings = {**settings, "fusion_depth": depth, "bm25_language": lexical.settings["language"]}
    seconds = {f"BM25 {phase}": value for phase, value in lexical.seconds.items()}
    return _judged(benchmark, first, fused, settings, seconds)


def rerank(
    benchmark: Benchmark,
    first: Evaluation,
    pair_scores: PairScores,
    *,
    depth: int = RERANK_DEPTH,
    progress: PhaseProgress = silent,
) -> Evaluation:
    """Reorder the first ``depth`` documents of each query by a cross-encoder; those below follow as they were.

    ``progress`` is called with the pairs scored and their number, and may raise to end the work.
    """
    began = time.perf_counter()
    documents = first.ranking.documents
    rows, columns = np.nonzero(documents[:, :depth] >= 0)
    # By length: a cross-encoder pads each batch to its longest pair.
    order = np.argsort([-len(benchmark.documents[documents[at]]) for at in zip(rows, columns, strict=True)])
    values = np.empty(len(rows), np.float64)
    for start in range(0, len(order), PAIRS_AT_ONCE):
        progress(start, len(order))
        batch = order[start : start + PAIRS_AT_ONCE]
        texts = [(benchmark.queries[rows[i]], benchmark.documents[documents[rows[i], columns[i]]]) for i in batch]
        values[batch] = pair_scores(texts)

    reordered = np.full((len(documents), min(depth, documents.shape[1])), -np.inf, np.float32)
    reordered[rows, columns] = values

    return _reordered(benchmark, first, reordered, depth, time.perf_counter() - began)


def rerank_tokens(benchmark: Benchmark, first: Evaluation, found: Encoded, *, depth: int = MAXSIM_DEPTH) -> Evaluation:
    """Reorder the first ``depth`` documents of each query by MaxSim; those below follow as they were.

    ``found`` are the token vectors of the benchmark's queries and documents.
    """
    began = time.perf_counter()
    queries, tokens, candidates = found.queries.tokens, found.documents.tokens, first.ranking.documents[:, :depth]
    reordered = np.full(candidates.shape, -np.inf, np.float32)

    for row, numbers in enumerate(candidates):
        there = np.flatnonzero(numbers >= 0)
        scores, scored = late_interaction.rerank_tokens(queries.of(row, row + 1), tokens, numbers[there], len(there))
        columns = dict(zip(numbers[there].tolist(), there.tolist(), strict=True))
        reordered[row, [columns[number] for number in scored.tolist()]] = scores

    index_bytes = first.counts.get(INDEX_BYTES, 0) + found.documents.nbytes
    first = replace(first, counts={**first.counts, INDEX_BYTES: index_bytes})

    return _reordered(benchmark, first, reordered, depth, time.perf_counter() - began)


def _reordered(benchmark: Benchmark, first: Evaluation, reordered: np.ndarray, depth: int, took: float) -> Evaluation:
    """The evaluation with its first documents in the order of the scores ``reordered``, (n_queries, at most depth)."""
    documents, scores = first.ranking.documents.copy(), first.ranking.scores.copy()

    for row, of_row in enumerate(reordered):
        best = np.argsort(-of_row, kind="stable")
        documents[row, : len(best)], scores[row, : len(best)] = documents[row, best], of_row[best]
        rest = np.flatnonzero(documents[row, len(best) :] >= 0)
        # Below the lowest of those that were read, in the order they had: a run is read by its scores.
        scores[row, len(best) + rest] = of_row[best[-1]] - 1 - rest

    ranking = in_trec_order(benchmark, documents, scores)
    query_ms = first.counts.get(QUERY_MS, 0) + 1000 * took / max(1, len(documents))
    first = replace(first, counts={**first.counts, QUERY_MS: round(query_ms, 3)})

    return _judged(benchmark, first, ranking, {"rerank_depth": depth}, {"reranking": round(took, 3)})


def _judged(
    benchmark: Benchmark, first: Evaluation, ranking: Ranking, settings: Mapping[str, Any], seconds: Mapping[str, float]
) -> Evaluation:
    """The evaluation with another ranking, its measures and its settings."""
    means, per_query, absent = judge(benchmark, ranking)
    return replace(
        first,
        measures=means,
        per_query=per_query,
        ranking=ranking,
        counts={**first.counts, "judged_without_results": absent},
        seconds={**first.seconds, **seconds},
        settings={**first.settings, **settings},
    )
