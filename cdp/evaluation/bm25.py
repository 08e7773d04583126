"""BM25 as a row to compare with, in the form in which a model's result comes. The index is ``cdp.retrievers.bm25``."""

from __future__ import annotations

import time

from cdp.benchmarks.benchmark import Benchmark
from cdp.evaluation.evaluate import Evaluation, Protocol, Watch, in_trec_order, judge
from cdp.retrievers.bm25 import (
    K1,
    NAME,
    TITLE,
    B,
    check_language,
    english_terms,
    index,
    index_key,
    index_size,
    language_in,
    load_index,
    rank,
    save_index,
    terms_of,
)

__all__ = [
    "K1", "NAME", "TITLE", "B", "check_language", "english_terms", "evaluate_bm25", "index", "index_key", "index_size",
    "language_in", "load_index", "rank", "save_index", "terms_of",
]  # fmt: skip


def evaluate_bm25(
    benchmark: Benchmark, *, language: str = "", top_k: int = 100, watch: Watch | None = None
) -> Evaluation:
    """BM25 on one split of a benchmark, in the form in which ``evaluate_model`` gives a model's result.

    ``language`` is the benchmark's own if empty. Raises ConfigError for a language without a word counter.
    """
    language = language or benchmark.counted_language
    check_language(language)
    began = time.perf_counter()
    made = index(benchmark.documents, language, watch=watch)
    ready = time.perf_counter()
    scores, documents = rank(
        made, benchmark.queries, top_k, language=language, exclude=benchmark.excluded_numbers(), watch=watch
    )
    ranking = in_trec_order(benchmark, documents, scores)
    searched = time.perf_counter()
    means, per_query, absent = judge(benchmark, ranking)
    return Evaluation(
        measures=means,
        per_query=per_query,
        ranking=ranking,
        protocol=Protocol("published", "bm25"),
        counts={
            "judged_queries": benchmark.n_queries,
            "judged_without_results": absent,
            "excluded_pairs": sum(map(len, benchmark.excluded.values())),
        },
        seconds={"indexing": round(ready - began, 3), "searching": round(searched - ready, 3)},
        settings={"similarity": "bm25", "k1": K1, "b": B, "language": language, "top_k": top_k},
    )
