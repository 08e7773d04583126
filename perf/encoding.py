"""How fast are minilm and static-minilm on a processor, against `SentenceTransformer.encode`, and BM25 against bm25s?

SciFact's abstracts where ../shared/data is there, else the demo's documents over and over. In turns on all cores. A
batch holds texts of similar length on each side, and most abstracts are cut at the model's 256 tokens, so that nearly
all of the time is the layers' arithmetic.

    python -m perf encoding             # some documents
    python -m perf.encoding --scifact   # SciFact end to end, NDCG@10 included: about half an hour
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cdp.base.workspace import REPOSITORY, SHIPPED_DATA, Workspace
from cdp.benchmarks.benchmark import load_benchmark
from cdp.evaluation.evaluate import evaluate_model
from cdp.retrievers import load, resolve
from cdp.retrievers.encode import Encoding, encode
from perf.timing import Row, compare, cpu_seconds, show

SCIFACT = REPOSITORY.parent / "shared" / "data" / "scifact"
TEXTS, STATIC_TEXTS, REPEATS = 32, 5000, 3


def texts(count: int) -> list[str]:
    """Documents as an evaluation embeds them, title first."""
    folder = SCIFACT if SCIFACT.exists() else SHIPPED_DATA / "demo"
    packed = folder / "corpus.jsonl.gz"
    whole = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / "corpus.jsonl").read_bytes()
    documents = [json.loads(line) for line in whole.decode("utf-8").splitlines()]
    every = max(1, len(documents) // count)
    chosen = (documents * (count // len(documents) + 1))[::every][:count]
    return [f"{document.get('title', '')} {document['text']}".strip() for document in chosen]


def run() -> list[Row]:
    """Rows in texts per second."""
    model, given = load(resolve("minilm", Workspace.default()), "cpu"), texts(TEXTS)

    def ours() -> np.ndarray:
        return encode(model, given, Encoding("", "document"))

    def peer() -> Any:
        return model.encode(given, normalize_embeddings=True, show_progress_bar=False)

    assert np.allclose(ours(), peer(), atol=1e-5)
    static, many = load(resolve("static-minilm", Workspace.default()), "cpu"), texts(STATIC_TEXTS)
    rows = [
        compare(
            "encoding by minilm on the CPU, fp32, sentence-transformers", ours, peer, amount=len(given), unit="texts",
            target=1.0, repeats=REPEATS,
        ),
        compare(
            "encoding by static-minilm, sentence-transformers",
            lambda: encode(static, many, Encoding("", "document")),
            lambda: static.encode(many, batch_size=128, normalize_embeddings=True, show_progress_bar=False),
            amount=len(many), unit="texts", target=1.0,
        ),
        *bm25_rows(),
    ]  # fmt: skip
    show(rows)
    return rows


def bm25_rows() -> list[Row]:
    """The best 100 documents of SciFact's queries, ours with stems and ties in order; nothing without the data."""
    import bm25s

    from cdp.retrievers import bm25

    if not SCIFACT.exists():
        return []
    benchmark = load_benchmark(SCIFACT)
    queries, documents = list(benchmark.queries), list(benchmark.documents)
    own, theirs = bm25.index(documents), bm25s.BM25(k1=bm25.K1, b=bm25.B, method="lucene")

    def tokens(given: list[str]) -> Any:
        return bm25s.tokenize(given, stopwords="en", show_progress=False)

    theirs.index(tokens(documents), show_progress=False)
    return [
        compare(
            "BM25 on SciFact, best 100, bm25s",
            lambda: bm25.rank(own, queries, 100),
            lambda: theirs.retrieve(tokens(queries), k=100, show_progress=False),
            amount=len(queries), unit="queries", target=1.0,
        )
    ]  # fmt: skip


def scifact() -> None:
    """SciFact end to end by minilm: reading, embedding, searching, NDCG@10; CPU seconds of all threads."""
    import pytrec_eval
    from sentence_transformers import util

    began = time.process_time()
    benchmark = load_benchmark(SCIFACT)
    reading = time.process_time() - began
    model = load(resolve("minilm", Workspace.default()), "cpu")

    def theirs() -> float:
        documents, queries = (
            model.encode(list(part), normalize_embeddings=True, convert_to_tensor=True, show_progress_bar=False)
            for part in (benchmark.documents, benchmark.queries)
        )
        hits = util.semantic_search(queries, documents, top_k=100)
        ids = benchmark.document_ids
        found = {
            query: {ids[hit["corpus_id"]]: hit["score"] for hit in listed}
            for query, listed in zip(benchmark.query_ids, hits, strict=True)
        }
        judge = pytrec_eval.RelevanceEvaluator(benchmark.qrels, {"ndcg_cut.10"})
        return statistics.mean(scores["ndcg_cut_10"] for scores in judge.evaluate(found).values())

    ways: dict[str, Callable[[], float]] = {
        "fp32": lambda: evaluate_model(model, benchmark).measures["ndcg@10"],
        "SentenceTransformer.encode and semantic_search": theirs,
    }

    print(f"reading {reading:.1f} CPU s")

    for name, way in ways.items():
        scores: list[float] = []
        taken = cpu_seconds(lambda way=way, scores=scores: scores.append(way()))  # type: ignore[misc]
        print(f"{name:48} {taken:8.1f} CPU s   NDCG@10 {100 * scores[0]:.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scifact", action="store_true", help="the whole benchmark instead of some documents")
    if parser.parse_args().scifact:
        scifact()
    else:
        run()
