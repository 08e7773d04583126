"""How long does a query take to answer over 30,000 documents, warm, with BM25, static-minilm and minilm?

Ours is the whole way of a page's search: the service, the socket, the search process, the query's encoding, exact
search, and the ten documents with their texts and the words that match. Peers hold everything in the same process and
give ten numbers: bm25s' own ``retrieve``, and sentence-transformers' ``encode_query`` with ``semantic_search``. The
limit is 100 ms per query.

The documents are drawn from the demo's words. Those of minilm get random embeddings under the key of their own: what a
query takes does not depend on them, and encoding them takes an hour on two cores.

    python -m perf.warm_query
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bm25s
import numpy as np
import psutil
from sentence_transformers import util

from cdp.base.workspace import SHIPPED_DATA, Workspace, read_jsonl
from cdp.corpus import load_manifest
from cdp.retrievers.encode import EmbeddingStore, npy, unit_length
from cdp.retrievers.resolve import resolve
from cdp.services import corpora, search
from cdp.serving.engine import Encoder, SearchEngine, load_encoder, open_documents
from perf.timing import Row, show

DOCUMENTS, WORDS, K, QUERIES, REPEATS = 30_000, 100, 10, 30, 2
LIMIT_MS = 100.0


def write(file: Path) -> list[str]:
    """A corpus of ``DOCUMENTS`` with words as frequent as in texts; the queries."""
    random = np.random.default_rng(0)
    texts = [str(line["text"]) for line in read_jsonl(SHIPPED_DATA / "demo" / "corpus.jsonl")]
    words = sorted({word for text in texts for word in text.split()})
    words = np.array([*random.permutation(words), *(f"term{i}" for i in range(60_000))])
    weights = 1 / np.arange(1, len(words) + 1)
    with open(file, "w", encoding="utf-8") as out:
        for first in range(0, DOCUMENTS, 1000):
            drawn = random.choice(words, (1000, WORDS), p=weights / weights.sum())
            for i, row in enumerate(drawn, first):
                out.write(json.dumps({"_id": str(i), "title": " ".join(row[:4]), "text": " ".join(row)}) + "\n")
    return [" ".join(random.choice(words[:4000], 8)) for _ in range(QUERIES)]


def random_embeddings(workspace: Workspace, encoder: Encoder, hash_of_texts: str) -> np.ndarray:
    """Embeddings under minilm's key; the same as one array."""
    random = np.random.default_rng(1)
    store, encoding = EmbeddingStore(workspace), encoder.encoding("document", "fp32")
    size = store._shard_size(store.root / encoding.key(hash_of_texts), encoding, hash_of_texts, DOCUMENTS)
    shards = []
    for number, start in enumerate(range(0, DOCUMENTS, size)):
        rows = random.standard_normal((min(size, DOCUMENTS - start), 384), dtype=np.float32)
        shards.append(unit_length(rows))
        (store.root / encoding.key(hash_of_texts) / f"shard-{number:05d}.npy").write_bytes(npy(shards[-1]))
    return np.concatenate(shards)


def run() -> list[Row]:
    """Per retriever a row against the limit and one against its peer, in queries per second."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["CDP_RUNTIME_DIR"] = f"{name}/run"
        workspace = Workspace(Path(name) / "workspace")
        queries = write(Path(name) / "documents.jsonl")
        corpus = corpora.add(workspace, Path(name) / "documents.jsonl").corpus.id
        documents = open_documents(workspace, load_manifest(workspace, corpus))
        rows = []

        try:
            for retriever in ("bm25", "static-minilm", "minilm"):
                began = time.perf_counter()
                peer = _peer(workspace, retriever, corpus, list(documents.contents()), documents.hash)
                print(f"{retriever}: indexed in {time.perf_counter() - began:.1f} s", flush=True)
                rows += _rows(workspace, retriever, corpus, queries, peer)
        finally:
            for process in psutil.Process().children():
                process.terminate()

    show(rows)
    return rows


def _peer(
    workspace: Workspace, retriever: str, corpus: str, texts: list[str], hash_of_texts: str
) -> Callable[[str], object]:
    """What answers a query in this process, once the documents are indexed on both sides."""
    if retriever == "bm25":
        SearchEngine(workspace, 1 << 30).open(retriever, corpus)
        index = bm25s.BM25(k1=0.9, b=0.4, method="lucene")
        index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
        return lambda query: index.retrieve(
            bm25s.tokenize([query], stopwords="en", show_progress=False), k=K, show_progress=False
        )

    encoder = load_encoder(resolve(retriever, workspace))

    if retriever == "minilm":
        vectors = random_embeddings(workspace, encoder, hash_of_texts)
    else:
        SearchEngine(workspace, 1 << 30).open(retriever, corpus)
        vectors = unit_length(np.asarray(encoder.model.encode_document(texts, show_progress_bar=False)))

    return lambda query: util.semantic_search(encoder.model.encode_query([query]), vectors, top_k=K)


def _rows(
    workspace: Workspace, retriever: str, corpus: str, queries: list[str], peer: Callable[[str], object]
) -> list[Row]:
    def ours(query: str) -> object:
        answer = search.search(workspace, query, [retriever], corpus, K).answers[0]
        assert len(answer.hits) == K, answer
        return answer

    ours(queries[0]), peer(queries[0])
    times = [(_ms(ours, q), _ms(peer, q)) for _ in range(REPEATS) for q in queries]
    mine, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    slowest = float(np.percentile([a for a, _ in times], 95))
    ratios = np.percentile([b / a for a, b in times], [5, 50, 95])
    name = f"warm query, {DOCUMENTS:,} documents, {retriever}"
    return [
        {"name": f"{name}, limit", "ours": mine, "peer": LIMIT_MS, "unit": "ms", "ratio": LIMIT_MS / mine,
         "target": 1.0, "spread": [LIMIT_MS / slowest, LIMIT_MS / min(a for a, _ in times)]},
        {"name": f"{name}, peer in its process", "ours": mine, "peer": theirs, "unit": "ms",
         "ratio": float(ratios[1]), "target": 0.3, "spread": [float(ratios[0]), float(ratios[2])]},
    ]  # fmt: skip


def _ms(work: Callable[[str], object], query: str) -> float:
    began = time.perf_counter()
    work(query)
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    run()
