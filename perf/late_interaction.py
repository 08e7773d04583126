"""How fast is exact MaxSim against the bare matrix product and sentence-transformers' own scoring?

10,000 documents of 120 token vectors, 128 dimensions, float16; 100 queries of 32 token vectors; one processor's seconds
of all threads, in random order. The bare product multiplies the same vectors, held as float32, and looks at no result;
the faster of its two orders counts. Reranking scores the first 100 candidates of one query, of another one each time:
where two documents come too near each other (in one query of five here), both are scored again, which takes a sixth
more.

torch takes 0.7 of NumPy's time for the bare product, which is what these processors can do: both stand as peers.

    python -m perf.late_interaction [--documents 10000]
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable

import numpy as np
import torch
from sentence_transformers.util.similarity import maxsim

from cdp.retrievers.exact_search import one_blas_thread, one_torch_thread
from cdp.retrievers.late_interaction import TokenVectors, rerank_tokens, search_tokens
from perf.timing import Row, in_turns, paired, show

DOCUMENTS, LENGTH, DIM = 10_000, 120, 128
QUERIES, QUERY_LENGTH, K = 100, 32, 10
STEP = 4096

Work = Callable[[], object]


def run(documents: int = DOCUMENTS, repeats: int = 3) -> list[Row]:
    """Exhaustive search against the product and the library, and reranking against the product."""
    random = np.random.default_rng(0)
    vectors = unit(random.standard_normal((documents * LENGTH, DIM), dtype=np.float32))
    asked = unit(random.standard_normal((QUERIES * QUERY_LENGTH, DIM), dtype=np.float32))
    queries = list(asked.reshape(QUERIES, QUERY_LENGTH, DIM))
    stored = TokenVectors(vectors.astype(np.float16), np.full(documents, LENGTH))

    as_tensors = torch.from_numpy(asked.reshape(QUERIES, QUERY_LENGTH, DIM)), torch.from_numpy(vectors)
    theirs = maxsim(as_tensors[0], as_tensors[1].view(documents, LENGTH, DIM))
    found = search_tokens(queries, stored, K)[1]
    agreed = np.mean(
        [len(np.intersect1d(a, b)) / K for a, b in zip(found, theirs.topk(K).indices.numpy(), strict=True)]
    )
    assert agreed > 0.99, agreed

    ways: dict[str, Work] = {
        "ours": lambda: search_tokens(queries, stored, K),
        "queries first": lambda: [asked @ vectors[i : i + STEP].T for i in range(0, len(vectors), STEP)],
        "documents first": lambda: [vectors[i : i + STEP] @ asked.T for i in range(0, len(vectors), STEP)],
        "sentence-transformers": lambda: maxsim(as_tensors[0], as_tensors[1].view(documents, LENGTH, DIM)),
    }

    times = in_turns(ways, repeats, seconds)
    bare = list(map(min, times["queries first"], times["documents first"]))
    amount = 2 * len(asked) * len(vectors) * DIM / 1e9

    return [
        paired("MaxSim, 100 queries, the bare product", times["ours"], bare, amount=amount, unit="GFLOP", target=0.7),
        paired(
            "MaxSim, 100 queries, sentence-transformers", times["ours"], times["sentence-transformers"],
            amount=amount, unit="GFLOP", target=1.0,
        ),
        *reranked(queries, stored, vectors),
    ]  # fmt: skip


def reranked(queries: list[np.ndarray], stored: TokenVectors, vectors: np.ndarray, repeats: int = 200) -> list[Row]:
    """100 candidates of each query in turn, from float16 and from float32, against NumPy's and torch's product."""
    chosen = np.random.default_rng(1).choice(len(stored), 100, replace=False)
    gathered = np.concatenate([vectors[i * LENGTH : (i + 1) * LENGTH] for i in chosen])
    as_float32 = TokenVectors(vectors, np.diff(stored.starts))
    as_tensor = torch.from_numpy(gathered)
    asked = {way: itertools.cycle(queries) for way in ("float16", "float32", "NumPy", "torch")}

    ways: dict[str, Work] = {
        "float16": lambda: rerank_tokens(next(asked["float16"]), stored, chosen, K),
        "float32": lambda: rerank_tokens(next(asked["float32"]), as_float32, chosen, K),
        "NumPy": lambda: gathered @ next(asked["NumPy"]).T,
        "torch": lambda: as_tensor @ torch.from_numpy(next(asked["torch"])).T,
    }

    # The search sets the threads of products and puts them back: within it all sides have one.
    with one_blas_thread(), one_torch_thread():
        in_turns(ways, 1)
        times = in_turns(ways, repeats, seconds)

    bare = [("the bare product", "NumPy", 1 / 1.5), ("torch's bare product", "torch", 1 / 2.25)]
    return [
        paired(f"MaxSim, 100 candidates, {kept}, {product}", times[kept], times[library], target=target)
        for kept in ("float16", "float32")
        for product, library, target in bare
    ]


def seconds(work: Work) -> float:
    """Processor seconds of all threads."""
    began = time.process_time()
    work()

    return time.process_time() - began


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    show(run(parser.parse_args().documents))
