"""PyLate reads a multi-vector retriever that was trained here, and saves its own: token vectors and MaxSim scores."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from pylate import models, rank, scores
from pylate.models.Dense import Dense

given = Path(sys.argv[1])
texts = json.loads((given / "ours.json").read_text())["token_texts"]
print("PyLate", version("pylate"), "sentence-transformers", version("sentence-transformers"))


def given_by(model: models.ColBERT) -> dict[str, np.ndarray]:
    """The vectors of each text and the scores, by the names that tests/interop/tokens.py gives them."""
    queries, documents = (model.encode(texts, is_query=is_query) for is_query in (True, False))
    found = {f"query{i}": vectors for i, vectors in enumerate(queries)}
    found |= {f"document{i}": vectors for i, vectors in enumerate(documents)}
    matrix = np.zeros((len(texts), len(texts)), np.float32)
    everything = list(range(len(texts)))
    for row, query in enumerate(queries):
        for one in rank.rerank([everything], [query], [documents])[0]:
            matrix[row, one["id"]] = one["score"]
    return {**found, "scores": matrix}


def largest(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], kind: str) -> float:
    names = [name for name in ours if name.startswith(kind)]
    assert all(ours[name].shape == theirs[name].shape for name in names), kind
    return max(float(np.abs(ours[name] - theirs[name]).max()) for name in names)


ours = dict(np.load(given / "models" / "minilm-multi" / "tokens.npz"))
theirs = given_by(models.ColBERT(str(given / "models" / "minilm-multi"), device="cpu"))
worst = {kind: largest(ours, theirs, kind) for kind in ("query", "document", "scores")}
halved = {name: vectors.astype(np.float16).astype(np.float32) for name, vectors in theirs.items()}
rounded = largest(ours, halved, "document")
print(f"minilm-multi, trained and exported here: {worst}; documents rounded to float16 {rounded}")
assert worst["query"] <= 1e-5
assert rounded <= 1e-3
assert worst["scores"] <= 2e-2

# Without the rounding: PyLate's scores of our vectors.
padded = [torch.nn.utils.rnn.pad_sequence([torch.from_numpy(ours[f"{role}{i}"]) for i in range(len(texts))], True)
          for role in ("query", "document")]  # fmt: skip
masks = [(vectors.norm(dim=2) > 0).float() for vectors in padded]
of_ours = scores.colbert_scores(*padded, queries_mask=masks[0], documents_mask=masks[1]).numpy()
print("colbert_scores of our vectors:", float(np.abs(of_ours - ours["scores"]).max()))
assert np.abs(of_ours - ours["scores"]).max() <= 1e-4

# PyLate's expansion is its own: the words' vectors stay, and others of [MASK] stand beside them.
folder = str(given / "models" / "minilm-multi")
expanded = models.ColBERT(folder, device="cpu", do_query_expansion=True, query_length=32)
for i, vectors in enumerate(expanded.encode(texts[:-1], is_query=True)):
    length = len(ours[f"query{i}"])
    same = float(np.abs(vectors[:length] - ours[f"query{i}"]).max())
    print(f"query {i} with expansion: {len(vectors)} vectors, those of its {length} tokens differ by {same:.1e}")
    assert same <= 1e-5

try:
    models.ColBERT(str(given / "models" / "minilm-multi-untrained"), device="cpu")
    print("minilm-multi-untrained: read")
except Exception as error:
    print(f"minilm-multi-untrained: not read, {type(error).__name__}: {str(error).splitlines()[0][:200]}")


def keep(name: str, source: str | None, **settings: object) -> None:
    """Save a model of PyLate's own and keep what it gives once it is read again."""
    torch.manual_seed(0)
    folder = given / "theirs" / name
    models.ColBERT(source, device="cpu", document_length=100, **settings).save(str(folder), create_model_card=False)
    np.savez(folder / "tokens.npz", **given_by(models.ColBERT(str(folder), device="cpu")))


base = str(given / "models" / "bases" / "bert")
keep("pylate", base)
keep("pylate-attending", base, attend_to_expansion_tokens=True)
keep("pylate-plain", base, do_query_expansion=False, query_prefix="", document_prefix="", skiplist_words=[])
keep("pylate-short", base, query_length=8, embedding_size=16)
layers = [models.ColBERT(base, device="cpu")[0], Dense(32, 64, bias=False, use_residual=True), Dense(64, 8)]
keep("pylate-residual", None, modules=layers)

# In Stanford's layout, which PyLate reads and does not write.
(given / "theirs" / "stanford").mkdir(parents=True, exist_ok=True)
stanford = models.ColBERT(str(given / "models" / "stanford"), device="cpu")
np.savez(given / "theirs" / "stanford" / "tokens.npz", **given_by(stanford))
