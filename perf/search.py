"""How fast is exact search against the bare matrix product, faiss and sentence-transformers?

200,000 random documents of 768 dimensions, the best 100 for 64 and for 1,000 queries, in memory, float32, on all cores.
Peers return float32 results; ours are those of float64. What each finds is compared before any time is taken.

    python -m perf.search
"""

from __future__ import annotations

import faiss
import numpy as np
import torch
from sentence_transformers import util

from cdp.evaluation import search
from perf.timing import Row, compare, show

DOCUMENTS, DIM, K = 200_000, 768, 100


def run() -> list[Row]:
    """Per number of queries a row for each peer; work is counted in multiply-adds, two operations each.

    The bare product, whose results nobody has looked at, is the yardstick for many queries only.
    """
    random = np.random.default_rng(0)
    documents = unit(random.standard_normal((DOCUMENTS, DIM), dtype=np.float32))
    as_tensor = torch.from_numpy(documents)
    index = faiss.IndexFlatIP(DIM)
    index.add(documents)
    rows = []
    for n, targets in ((64, (None, 1.0, 1.0)), (1000, (0.85, 1.0, 1.0))):
        queries = unit(random.standard_normal((n, DIM), dtype=np.float32))
        tensor = torch.from_numpy(queries)
        ours = search(queries, documents, K)
        agreed = np.mean(
            [len(np.intersect1d(a, b)) / K for a, b in zip(ours[1], index.search(queries, K)[1], strict=True)]
        )
        assert agreed > 0.999, agreed
        peers = {
            "the bare product (torch, float32)": lambda tensor=tensor: [
                tensor @ as_tensor[start : start + 8192].T for start in range(0, DOCUMENTS, 8192)
            ],
            "faiss IndexFlatIP": lambda queries=queries: index.search(queries, K),
            "semantic_search": lambda tensor=tensor: util.semantic_search(tensor, as_tensor, top_k=K),
        }
        for (name, peer), target in zip(peers.items(), targets, strict=True):
            if target is None:
                continue
            rows.append(
                compare(
                    f"search, {n} queries, {name}",
                    lambda queries=queries: search(queries, documents, K),
                    peer,
                    amount=round(2 * n * DOCUMENTS * DIM / 1e9),
                    unit="GFLOP",
                    target=target,
                    repeats=5,
                )
            )
    show(rows)
    return rows


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


if __name__ == "__main__":
    run()
