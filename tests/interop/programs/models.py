"""Models from here in another version of sentence-transformers: equal vectors."""

import json
import sys
from pathlib import Path

import numpy as np
import sentence_transformers
import transformers

given = Path(sys.argv[1])
texts = json.loads((given / "ours.json").read_text())["texts"]
print("sentence-transformers", sentence_transformers.__version__, "transformers", transformers.__version__)
for name in ("static", "mean", "cls", "dense", "decoder", "minilm"):
    folder = given / "models" / name
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    worst = float(np.abs(model.encode(texts) - np.load(folder / "vectors.npy")).max())
    print(name, worst, model.max_seq_length)
    assert worst <= 1e-6, name
