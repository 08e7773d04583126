"""One side of ``perf.late_interaction_peers`` or ``perf.fast_plaid`` in an environment of its own: a program at work.

It reads the vectors that lie in a folder, then does its work once for each line that it is given, and answers with
processor seconds of all threads; at the end with its peak memory and what it found.

    python -I perf/token_peers.py fast-plaid FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

K = 10
CANDIDATES = 100
SAMPLED = 500

# What a side does: one query or all over all documents, or one over candidates; each returns (queries, K) indices.
Work = dict[str, Callable[[], Any]]


def ours(folder: Path) -> Work:
    """Exact, over float16 on the disk."""
    from cdp.retrievers.late_interaction import TokenVectors, rerank_tokens, search_tokens

    queries, lengths = np.load(folder / "queries.npy"), np.load(folder / "lengths.npy")
    documents = TokenVectors(np.load(folder / "documents.npy", mmap_mode="r"), lengths)
    chosen = np.load(folder / "candidates.npy")
    return {
        "one": lambda: search_tokens(list(queries[:1]), documents, K)[1],
        "all": lambda: search_tokens(list(queries), documents, K)[1],
        "candidates": lambda: rerank_tokens(queries[0], documents, chosen, K)[1][None],
    }


def library(folder: Path) -> Work:
    """sentence-transformers' ``maxsim``, exact, over float32 in memory, by blocks of its own choice."""
    import torch
    from sentence_transformers.util.similarity import maxsim

    queries, documents, chosen = _tensors(folder)
    return {
        "one": lambda: maxsim(queries[:1], documents).topk(K).indices,
        "all": lambda: maxsim(queries, documents).topk(K).indices,
        "candidates": lambda: torch.from_numpy(chosen)[maxsim(queries[:1], documents[chosen]).topk(K).indices],
    }


def pylate(folder: Path) -> Work:
    """PyLate's ``colbert_scores``, exact, over float32 in memory, a query at a time; ``rank.rerank`` for candidates."""
    import torch
    from pylate import rank
    from pylate.scores import colbert_scores

    queries, documents, chosen = _tensors(folder)

    def best(queries: Any) -> Any:
        return torch.cat([colbert_scores(query[None], documents).topk(K).indices for query in queries])

    def reranked() -> list[list[Any]]:
        found = rank.rerank([chosen.tolist()], [queries[0]], [[documents[i] for i in chosen]])
        return [[one["id"] for one in found[0][:K]]]

    return {
        "one": lambda: best(queries[:1]),
        "all": lambda: best(queries),
        "candidates": reranked,
    }


def plaid(folder: Path) -> Work:
    """fast-plaid by its defaults, approximate: documents near 8 centroids of a token, 4,096 of them scored from 4 bits
    a number. Its index is made once and kept, from centroids of ``SAMPLED`` documents (by default all)."""
    import torch
    from fast_plaid.search import FastPlaid

    index = FastPlaid(str(folder / "plaid"), device="cpu")
    queries = torch.from_numpy(np.load(folder / "queries.npy"))
    if not (folder / "plaid" / "metadata.json").exists():
        began = time.process_time()
        index.create(list(_tensors(folder)[1]), n_samples_kmeans=SAMPLED)
        print(f"fast-plaid made its index in {time.process_time() - began:.0f} CPU s", file=sys.stderr, flush=True)

    def best(queries: Any) -> list[list[int]]:
        rows = index.search(queries, top_k=K, show_progress=False)
        return [[document for document, _ in row] for row in rows]

    return {"one": lambda: best(queries[:1]), "all": lambda: best(queries)}


SIDES = {"ours": ours, "sentence-transformers": library, "PyLate": pylate, "fast-plaid": plaid}


def _tensors(folder: Path) -> tuple[Any, Any, np.ndarray]:
    """Queries and documents as float32, (n, tokens, dim), and the candidates of the first query."""
    import torch

    queries, lengths = np.load(folder / "queries.npy"), np.load(folder / "lengths.npy")
    documents = torch.from_numpy(np.load(folder / "documents.npy", mmap_mode="r").astype(np.float32))
    return torch.from_numpy(queries), documents.view(len(lengths), lengths[0], -1), np.load(folder / "candidates.npy")


def main(name: str, folder: Path) -> None:
    """Answer lines until there are no more."""
    work = SIDES[name](folder)
    found: dict[str, Any] = {}
    print(json.dumps(list(work)), flush=True)
    for line in sys.stdin:
        began = time.process_time()
        found[line.strip()] = work[line.strip()]()
        print(time.process_time() - began, flush=True)

    # ``ru_maxrss`` begins with the memory of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii").split()
    peak = int(status[status.index("VmHWM:") + 1]) / 1024
    print(json.dumps({"peak_mib": peak, "found": {what: np.asarray(rows).tolist() for what, rows in found.items()}}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
