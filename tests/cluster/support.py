"""What tests on a cluster share: a benchmark of many documents, and embeddings in many small shards."""

from __future__ import annotations

import json
import random
from pathlib import Path

from cdp.base.workspace import Workspace, write_json
from cdp.benchmarks import load_benchmark
from cdp.evaluation.evaluate import length_of
from cdp.evaluation.protocols import protocol_for
from cdp.retrievers import load, model_hash, resolve
from cdp.retrievers.encode import EmbeddingStore, Encoding

DOCUMENTS, QUERIES, SHARD = 6_000, 400, 250


def a_benchmark(folder: Path, n_documents: int = DOCUMENTS, n_queries: int = QUERIES) -> Path:
    """Documents of many lengths; the queries are pieces of some."""
    words, rng = [f"w{i:x}" for i in range(3000)], random.Random(4)
    documents = {f"d{i}": " ".join(rng.choices(words, k=rng.randint(5, 60))) for i in range(n_documents)}
    queries = {f"q{i}": " ".join(documents[f"d{7 * i}"].split()[:6]) for i in range(n_queries)}
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = (json.dumps({"_id": key, "text": text}) for key, text in texts.items())
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    rows = "".join(f"q{i}\td{7 * i}\t1\n" for i in range(n_queries))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


def with_small_shards(model: Path, benchmark: Path, *workspaces: Workspace) -> str:
    """Begin the documents' embeddings in shards small enough that many are made; the name of their folder."""
    loaded = load(resolve(str(model), workspaces[0]), "cpu")
    protocol = protocol_for(loaded, "published")
    encoding = Encoding(
        model_hash(loaded), "document", protocol.document_prompt, protocol.normalise, length_of(loaded), "fp32"
    )
    key = encoding.key(load_benchmark(benchmark).documents_hash)
    for workspace in workspaces:
        write_json(EmbeddingStore(workspace).folder(key) / "manifest.json", {"schema": 1, "shard_texts": SHARD})
    return key


def shards(workspace: Workspace) -> dict[str, bytes]:
    paths = workspace.embeddings.rglob("shard-*.npy")
    return {str(path.relative_to(workspace.embeddings)): path.read_bytes() for path in sorted(paths)}


def made_shards(workspace: Workspace, key: str) -> list[Path]:
    return sorted((workspace.embeddings / key).glob("shard-*.npy"))
