"""What several tests of evaluations share."""

from __future__ import annotations

from typing import Any

import numpy as np

from cdp.benchmarks import Benchmark
from cdp.evaluation import search
from cdp.evaluation.evaluate import Ranking, in_trec_order


def retrieve(benchmark: Benchmark, queries: np.ndarray, documents: Any, top_k: int) -> Ranking:
    """The ``top_k`` documents of each query as an evaluation finds them: exclusions left out, in trec_eval's order."""
    scores, numbers = search(queries, documents, top_k, exclude=benchmark.excluded_numbers())
    return in_trec_order(benchmark, numbers, scores)
