"""How good is a retriever: benchmarks, encoding, exact search, measures, and differences that mean something.

Importing this loads no torch. ``cdp.evaluation.evaluate`` and the worker load it when they need it.
"""

from __future__ import annotations

from cdp.evaluation.benchmarks import Benchmark, list_splits, load_benchmark
from cdp.evaluation.evaluate import Evaluation, evaluate_model
from cdp.evaluation.exact_search import search
from cdp.evaluation.library import (
    BenchmarkInfo,
    add_benchmark,
    choose_split,
    describe,
    list_benchmarks,
    remove_benchmark,
    resolve_benchmark,
)
from cdp.evaluation.scoring import Scores, ndcg, score

__all__ = [
    "Benchmark",
    "BenchmarkInfo",
    "Evaluation",
    "Scores",
    "add_benchmark",
    "choose_split",
    "describe",
    "evaluate_model",
    "list_benchmarks",
    "list_splits",
    "load_benchmark",
    "ndcg",
    "remove_benchmark",
    "resolve_benchmark",
    "score",
    "search",
]
