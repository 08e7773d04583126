"""sentence-transformers' own classes on retrievers of token vectors and of weighted words: vectors, scores, NDCG@10."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sentence_transformers import MultiVectorEncoder, SparseEncoder
from sentence_transformers.multi_vector_encoder.evaluation import MultiVectorInformationRetrievalEvaluator
from sentence_transformers.sparse_encoder.evaluation import SparseInformationRetrievalEvaluator

given = Path(sys.argv[1])
said = json.loads((given / "ours.json").read_text())
texts = said["token_texts"]
print("sentence-transformers", version("sentence-transformers"), "transformers", version("transformers"))

task = {}
for part in ("corpus", "queries"):
    lines = [json.loads(line) for line in (given / "task" / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()]
    task[part] = {line["_id"]: f"{line.get('title', '')} {line['text']}".strip() for line in lines}
relevant: dict[str, set[str]] = {}
for query, _, document, grade in map(str.split, (given / "demo.qrels").read_text(encoding="utf-8").splitlines()):
    if int(grade) > 0:
        relevant.setdefault(query, set()).add(document)
queries = {query: task["queries"][query] for query in relevant}

READERS = {
    "minilm-multi": (MultiVectorEncoder, MultiVectorInformationRetrievalEvaluator),
    "minilm-multi-untrained": (MultiVectorEncoder, MultiVectorInformationRetrievalEvaluator),
    "minilm-sparse": (SparseEncoder, SparseInformationRetrievalEvaluator),
}
for name, (reader, judge) in READERS.items():
    folder = given / "models" / name
    model, ours = reader(str(folder), device="cpu"), np.load(folder / "tokens.npz")
    sparse = reader is SparseEncoder
    options = {"convert_to_sparse_tensor": False} if sparse else {}
    sides = {"query": model.encode_query(texts, **options), "document": model.encode_document(texts, **options)}
    scores = float(np.abs(model.similarity(sides["query"], sides["document"]).numpy() - ours["scores"]).max())

    worst = {}
    for role, vectors in sides.items():
        rows = [np.atleast_2d(one.numpy()) for one in vectors]
        if role == "document" and not sparse:  # kept as float16
            rows = [one.astype(np.float16).astype(np.float32) for one in rows]
        assert all(one.shape == ours[f"{role}{i}"].shape for i, one in enumerate(rows)), (name, role)
        worst[role] = max(float(np.abs(one - ours[f"{role}{i}"]).max()) for i, one in enumerate(rows))

    found = judge(queries, task["corpus"], relevant, write_csv=False)(model)
    ndcg = next(value for key, value in found.items() if key.endswith("ndcg@10"))
    print(f"{name}: {worst}, scores {scores:.1e}, NDCG@10 {ndcg:.6f}, here {said['token_ndcg'][name]:.6f}")
    assert max(worst.values()) <= 1e-3, name
    assert scores <= 2e-2, name
    assert abs(ndcg - said["token_ndcg"][name]) <= 1e-4, name
