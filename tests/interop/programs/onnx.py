"""Models from here through sentence-transformers' ONNX backend, and with Transformers alone."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

given = Path(sys.argv[1])
ours = json.loads((given / "ours.json").read_text())
print("sentence-transformers", version("sentence-transformers"), "transformers", version("transformers"))


def difference(vectors: np.ndarray, folder: Path) -> float:
    return float(np.abs(vectors - np.load(folder / "vectors.npy")).max())


for name in ("mean", "minilm"):
    folder = given / "models" / name
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    batch = tokenizer(ours["texts"], padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    pooled = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1))
    shape = batch["input_ids"].shape
    print(f"Transformers alone, {name}, {shape}:", worst := difference(pooled.numpy(), folder))
    assert worst <= 1e-6

try:
    print("onnxruntime", version("onnxruntime"), "optimum-onnx", version("optimum-onnx"))
except ModuleNotFoundError:
    sys.exit()
# A decoder that optimum exports asks for position_ids, which sentence-transformers does not hand over.
for name in ("mean", "cls", "dense", "minilm"):
    folder = given / "models" / name
    exported = SentenceTransformer(str(folder), backend="onnx", device="cpu")
    print(f"ONNX, {name}:", worst := difference(exported.encode(ours["texts"]), folder))
    assert worst <= 1e-5
