"""What several tests of evaluations share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from cdp.benchmarks import Benchmark
from cdp.evaluation import search
from cdp.evaluation.evaluate import Ranking, in_trec_order


def retrieve(benchmark: Benchmark, queries: np.ndarray, documents: Any, top_k: int) -> Ranking:
    """The ``top_k`` documents of each query as an evaluation finds them: exclusions left out, in trec_eval's order."""
    scores, numbers = search(queries, documents, top_k, exclude=benchmark.excluded_numbers())
    return in_trec_order(benchmark, numbers, scores)


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """{query: {document: score}} of a ``run.parquet``."""
    run: dict[str, dict[str, float]] = {}
    for row in pq.read_table(path).to_pylist():
        run.setdefault(row["query_id"], {})[row["document_id"]] = row["score"]
    return run
