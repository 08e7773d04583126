"""How fast is exact search against the bare matrix product, faiss and sentence-transformers?

100,000 random documents of 768 dimensions, the best 100 for 1, 64 and 1,000 queries, in memory, float32, on all cores.
Peers return float32 results; ours are those of float64. What each finds is compared before any time is taken.

The yardstick at 1,000 queries is the faster of NumPy's and torch's bare product, whose results are not looked at. It,
faiss and ``semantic_search`` take turns with ours within each repeat.

    python -m perf.search
    python -m perf.search --avx2                         # a stand-in for a processor without AVX-512
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
from perf.timing import Row, of_ratios, show

# What forbids the libraries wider instructions, where they can be told; read when they are loaded.
AVX2 = {
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}

DOCUMENTS, DIM, K, STEP = 100_000, 768, 100, 8192
QUERIES = (1, 64, 1000)

FAISS, SEMANTIC, BARE = "faiss IndexFlatIP", "semantic_search", "the fastest bare product (float32)"
GOALS = {1: {FAISS: 0.9, SEMANTIC: 1.0}, 64: {FAISS: 1.0, SEMANTIC: 1.0}, 1000: {FAISS: 1.0, SEMANTIC: 1.0, BARE: 0.7}}

# Documents whose norms were taken once, as the search process holds them.
PREPARED = "prepared"

Work = Callable[[], object]


def run(documents: int = DOCUMENTS, clock: Callable[[], float] = time.perf_counter, repeats: int = 3) -> list[Row]:
    """Per number of queries a row for each peer; work is counted in multiply-adds, two operations each."""
    random = np.random.default_rng(0)
    vectors = unit(random.standard_normal((documents, DIM), dtype=np.float32))
    prepared = Prepared(vectors)
    index = faiss.IndexFlatIP(DIM)
    index.add(vectors)
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}", flush=True)

    rows = []
    for n in QUERIES:
        asked = unit(random.standard_normal((n, DIM), dtype=np.float32))
        ours = search(asked, vectors, K)
        found = index.search(asked, K)[1]
        agreed = np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(ours[1], found, strict=True)])
        assert agreed > 0.999, agreed
        ways = {
            "ours": lambda asked=asked: search(asked, vectors, K),
            FAISS: lambda asked=asked: index.search(asked, K),
            SEMANTIC: lambda asked=asked: util.semantic_search(
                torch.from_numpy(asked), torch.from_numpy(vectors), top_k=K
            ),
        }

        if n == 1:
            ways[PREPARED] = lambda asked=asked: search(asked, prepared, K)
        if BARE in GOALS[n]:
            ways |= products(asked, vectors)

        if n < 1000:  # of many queries a single search is long enough to be warm
            for work in ways.values():
                work()

        times = [{name: seconds(work, clock) for name, work in ways.items()} for _ in range(repeats)]
        rows += compared(n, documents, times)

    show(rows)
    return rows


def products(queries: np.ndarray, documents: np.ndarray) -> dict[str, Work]:
    """The bare product both ways round."""
    tensor, as_tensor = torch.from_numpy(queries), torch.from_numpy(documents)
    parts = range(0, len(documents), STEP)
    return {
        "torch": lambda: [tensor @ as_tensor[i : i + STEP].T for i in parts],
        "torch, documents first": lambda: [as_tensor[i : i + STEP] @ tensor.T for i in parts],
        "NumPy": lambda: [queries @ documents[i : i + STEP].T for i in parts],
        "NumPy, documents first": lambda: [documents[i : i + STEP] @ queries.T for i in parts],
    }


def compared(n: int, documents: int, times: list[dict[str, float]]) -> list[Row]:
    """Rows from seconds taken in turns. The bare product is in each repeat the fastest of its forms."""
    for taken in times:
        taken[BARE] = min((s for name, s in taken.items() if name.startswith(("torch", "NumPy"))), default=0.0)

    pairs = [("ours", peer, goal) for peer, goal in GOALS[n].items()]
    pairs += [(PREPARED, FAISS, 1.0)] if n == 1 else []
    amount = 2 * n * documents * DIM / 1e9

    return [
        {
            "name": f"search, {n} queries{', prepared documents' if ours == PREPARED else ''}, {peer}",
            "ours": amount / statistics.median(taken[ours] for taken in times),
            "peer": amount / statistics.median(taken[peer] for taken in times),
            "unit": "GFLOP/s",
            "target": goal,
            **of_ratios([taken[peer] / taken[ours] for taken in times]),
        }
        for ours, peer, goal in pairs
    ]


def machine() -> str:
    """What the libraries make of the processor."""
    blas = {f"{lib['internal_api']} {lib.get('architecture', '')}".strip() for lib in threadpool_info()}
    capability = torch.backends.cpu.get_cpu_capability()
    return f"torch {capability}, {', '.join(sorted(blas))}, {torch.get_num_threads()} threads"


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
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: processor seconds")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--avx2", action="store_true", help="forbid the libraries wider instructions")
    given = parser.parse_args()
    if given.avx2 and not AVX2.items() <= os.environ.items():
        command = [sys.executable, "-m", "perf.search", *sys.argv[1:]]
        os.execve(command[0], command, {**os.environ, **AVX2})  # libraries read it when they are loaded
    clock = time.process_time if given.clock == "cpu" else time.perf_counter
    run(given.documents, clock, given.repeats)


if __name__ == "__main__":
    main()
