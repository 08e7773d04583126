"""How fast is exact search against the bare matrix product, faiss and sentence-transformers?

100,000 random documents of 768 dimensions, the best 100 for 1, 16, 64 and 1,000 queries, in memory, float32, on all
cores. Peers return float32 results; ours are those of float64. What each finds is compared before any time is taken.

The yardsticks: the faster of NumPy's and torch's bare product, whose results nobody has looked at, and for few queries
reading the documents once (the product with one). These, faiss and ``semantic_search`` take turns with ours within each
repeat.

    python -m perf.search
    python -m perf.search --first-pass float32 --avx2    # a stand-in for a processor without AVX-512 and bfloat16
    python -m perf.search --clock cpu --documents 50000  # on a busy machine: processor seconds of all threads
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

import faiss
import numpy as np
import torch
from sentence_transformers import util
from threadpoolctl import threadpool_info

from cdp.evaluation import search
from cdp.retrievers.exact_search import Prepared
from cdp.retrievers.exact_search.measured import fastest
from perf.timing import Row, of_ratios, show

AVX2 = {
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}
"""What forbids the libraries wider instructions, where they can be told; read when they are loaded."""

DOCUMENTS, DIM, K, STEP = 100_000, 768, 100, 8192

QUERIES = (1, 16, 64, 1000)

Work = Callable[[], object]


def run(
    documents: int = DOCUMENTS,
    queries: tuple[int, ...] = QUERIES,
    first_pass: str = "auto",
    clock: Callable[[], float] = time.perf_counter,
    repeats: int = 3,
) -> list[Row]:
    """Per number of queries a row for each peer; work is counted in multiply-adds, two operations each."""
    random = np.random.default_rng(0)
    vectors = unit(random.standard_normal((documents, DIM), dtype=np.float32))
    prepared = Prepared(vectors)
    index = faiss.IndexFlatIP(DIM)
    index.add(vectors)
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}")
    rows = []
    for n in queries:
        asked = unit(random.standard_normal((n, DIM), dtype=np.float32))
        ours = search(asked, vectors, K, first_pass=first_pass)
        found = index.search(asked, K)[1]
        agreed = np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(ours[1], found, strict=True)])
        assert agreed > 0.999, agreed
        print(f"{n} queries: {fastest(n, n * documents * DIM, first_pass, 'cpu')}", flush=True)
        ways = {
            "ours": lambda asked=asked: search(asked, vectors, K, first_pass=first_pass),
            **products(asked, vectors),
            "faiss IndexFlatIP": lambda asked=asked: index.search(asked, K),
            "semantic_search": lambda asked=asked: util.semantic_search(
                torch.from_numpy(asked), torch.from_numpy(vectors), top_k=K
            ),
        }
        if n < FEW:
            ways[PREPARED] = lambda asked=asked: search(asked, prepared, K, first_pass=first_pass)
            for work in ways.values():  # of many queries a single search is long enough to be warm
                work()
        times = [{name: seconds(work, clock) for name, work in ways.items()} for _ in range(repeats)]
        rows += compared(n, documents, times)
    show(rows)
    return rows


def products(queries: np.ndarray, documents: np.ndarray) -> dict[str, Work]:
    """The bare product both ways round, and with one query, which takes as long as reading the documents."""
    tensor, as_tensor = torch.from_numpy(queries), torch.from_numpy(documents)
    parts = range(0, len(documents), STEP)
    return {
        "torch": lambda: [tensor @ as_tensor[i : i + STEP].T for i in parts],
        "torch, documents first": lambda: [as_tensor[i : i + STEP] @ tensor.T for i in parts],
        "NumPy": lambda: [queries @ documents[i : i + STEP].T for i in parts],
        "NumPy, documents first": lambda: [documents[i : i + STEP] @ queries.T for i in parts],
        "NumPy, one query": lambda: documents @ queries[0],
        "torch, one query": lambda: as_tensor @ tensor[0],
    }


FEW = 64
"""With fewer queries than this the documents' norms and the reading of the documents show in the time."""

PREPARED = "prepared"
"""Documents whose norms were taken once, as the search process holds them."""

READING = ("NumPy, one query", "torch, one query")

BARE = ("torch", "torch, documents first", "NumPy", "NumPy, documents first")


def compared(n: int, documents: int, times: list[dict[str, float]]) -> list[Row]:
    """Rows from seconds taken in turns. The bare product is in each repeat the fastest of its forms."""
    bare, reading = "the fastest bare product (float32)", "reading the documents once"
    for taken in times:
        taken[bare] = min(taken[name] for name in BARE)
        taken[reading] = min(taken[name] for name in READING)
    goals = [("ours", bare, 0.85), ("ours", "faiss IndexFlatIP", 1.0), ("ours", "semantic_search", 1.0)]
    if n < FEW:
        goals = [("ours", reading, 0.85), (PREPARED, reading, 0.85), *goals, (PREPARED, "faiss IndexFlatIP", 1.0)]
    rows = []
    for ours, peer, goal in goals:
        amount, unit_name = 2 * n * documents * DIM / 1e9, "GFLOP/s"
        if peer == reading:
            amount, unit_name = 4 * documents * DIM / 1e9, "GB/s"
        ratios = [taken[peer] / taken[ours] for taken in times]
        which = ", prepared documents" if ours == PREPARED else ""
        rows.append(
            {
                "name": f"search, {n} queries{which}, {peer}",
                "ours": amount / statistics.median(taken[ours] for taken in times),
                "peer": amount / statistics.median(taken[peer] for taken in times),
                "unit": unit_name,
                "target": goal,
                **of_ratios(ratios),
            }
        )
    return rows


def machine() -> str:
    """What the libraries make of the processor."""
    blas = {f"{lib['internal_api']} {lib.get('architecture', '')}".strip() for lib in threadpool_info()}
    bfloat16 = "with" if torch.cpu._is_avx512_bf16_supported() else "without"
    return (
        f"torch {torch.backends.cpu.get_cpu_capability()}, {', '.join(sorted(blas))}, {bfloat16} bfloat16 products, "
        f"{torch.get_num_threads()} threads"
    )


def seconds(work: Work, clock: Callable[[], float]) -> float:
    """By ``clock``: the wall's, or this process's processor time."""
    began = clock()
    work()
    return clock() - began


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--queries", type=int, nargs="+", default=QUERIES)
    parser.add_argument("--first-pass", choices=("auto", "float32", "bfloat16"), default="auto")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: processor seconds")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--avx2", action="store_true", help="forbid the libraries wider instructions")
    given = parser.parse_args()
    if given.avx2 and not AVX2.items() <= os.environ.items():
        command = [sys.executable, "-m", "perf.search", *sys.argv[1:]]
        os.execve(command[0], command, {**os.environ, **AVX2})  # libraries read it when they are loaded
    clock = time.process_time if given.clock == "cpu" else time.perf_counter
    run(given.documents, tuple(given.queries), given.first_pass, clock, given.repeats)


if __name__ == "__main__":
    main()
