"""Benchmarks: documents, queries and judgments in folders of BEIR layout, where they come from, and the registry.

The sole owner of these folders: who needs one asks here. Importing this loads no torch.
"""

from __future__ import annotations

from cdp.benchmarks.benchmark import Benchmark, load_benchmark
from cdp.benchmarks.library import (
    BenchmarkInfo,
    add_benchmark,
    choose_split,
    describe,
    judged_on,
    list_benchmarks,
    remove_benchmark,
    resolve_benchmark,
)

__all__ = [
    "Benchmark", "BenchmarkInfo", "add_benchmark", "choose_split", "describe", "judged_on", "list_benchmarks",
    "load_benchmark", "remove_benchmark", "resolve_benchmark",
]  # fmt: skip
