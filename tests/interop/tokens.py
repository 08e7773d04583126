"""Retrievers of token vectors (ColBERT) and of weighted words (SPLADE), for peers to read; and theirs, read here.

``make`` trains, exports and keeps what ours give for ``TEXTS``; ``come_back`` reads the folders that a peer saved, or
read in Stanford's layout, and compares with what the peer kept beside each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.workspace import Workspace, write_json
from cdp.benchmarks import Benchmark
from cdp.evaluation.evaluate import encode_both, evaluate_model, protocol_for, retrieve
from cdp.retrievers import SPARSE, load, resolve, spelling
from cdp.retrievers.load import kind_of
from tests.support import REPOSITORY
from tests.support_models import tiny_bert

# With and without punctuation, and longer than the queries of PyLate and than the tiny encoders.
TEXTS = ["tea", "tea leaves, and water.", "a ship and its hull of wood", "x " * 300]
VECTORS = "tokens.npz"

# The retrievers of ours that peers read. Only a training projects the token vectors.
TRAINED, UNTRAINED = ("minilm-multi", "minilm-sparse"), "minilm-multi-untrained"
# One step of all queries, each with its hard negatives.
STEP = ("--set", "hard_negatives=3", "--set", "gpus=0")
# The markers that Stanford's ColBERT puts before a text: words of BERT's vocabulary.
MARKERS = ("[unused0]", "[unused1]")

# One place of float16, in which documents are kept here; a score of theirs adds up to 256 unrounded products.
WITHIN = {"query": 1e-5, "document": 1e-3, "scores": 2e-2}


def make(folder: Path, workspace: Workspace, query_set: str, benchmark: Benchmark) -> dict[str, float]:
    """Write the models to ``folder``, each with what it gives; return the NDCG@10 of each on a benchmark."""
    for name in TRAINED:
        _cdp(workspace, "train", query_set, "--retriever", name, "--name", f"my {name}", "--wait", *STEP)
        _cdp(workspace, "models", "export", f"my {name}", str(folder / name))

    spelling.save(load(resolve(UNTRAINED.removesuffix("-untrained"), workspace), "cpu"), folder / UNTRAINED)
    stanford(folder / "stanford")

    found = {}
    for name in (*TRAINED, UNTRAINED):
        model = load(resolve(str(folder / name), workspace), "cpu")
        np.savez(folder / name / VECTORS, **given_by(model))
        found[name] = evaluate_model(model, benchmark).measures["ndcg@10"]
    return found


def _cdp(workspace: Workspace, *words: str) -> None:
    """Run a command of ours on a workspace."""
    environment = {**os.environ, "CDP_WORKSPACE": str(workspace.root)}
    subprocess.run([sys.executable, "-m", "cdp", *words], cwd=REPOSITORY, env=environment, check=True)


def stanford(folder: Path, dim: int = 8) -> None:
    """Write a tiny encoder as Stanford's ColBERT saves one: a projection among its weights, its settings beside."""
    import torch
    from safetensors.torch import load_file, save_file

    tiny_bert(folder)
    tokenizer, config = (json.loads((folder / name).read_text()) for name in ("tokenizer.json", "config.json"))
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary |= {marker: len(vocabulary) + i for i, marker in enumerate(MARKERS)}

    torch.manual_seed(0)
    weights = load_file(folder / "model.safetensors")
    words = "embeddings.word_embeddings.weight"
    weights[words] = torch.cat([weights[words], torch.randn(len(MARKERS), weights[words].shape[1])])
    projection = torch.randn(dim, weights[words].shape[1])
    weights = {f"bert.{name}": tensor for name, tensor in weights.items()} | {"linear.weight": projection}

    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "tokenizer.json", tokenizer)
    write_json(folder / "config.json", {**config, "architectures": ["HF_ColBERT"], "vocab_size": len(vocabulary)})
    told = {"query_token_id": MARKERS[0], "doc_token_id": MARKERS[1], "query_maxlen": 32, "doc_maxlen": 40}
    more = {"dim": dim, "attend_to_mask_tokens": False, "mask_punctuation": True, "interaction": "colbert"}
    write_json(folder / "artifact.metadata", {**told, **more})


def given_by(model: Any) -> dict[str, np.ndarray]:
    """Return the vectors of each of ``TEXTS``, ``query0`` … and ``document0`` …, and ``scores`` (query, document).

    Of a sparse model a text has one vector, a number for each word of the vocabulary.
    """
    protocol = protocol_for(model)
    encoded = encode_both(model, TEXTS, TEXTS, protocol, "fp32")
    found = {}
    for role, embedded in (("query", encoded.queries), ("document", encoded.documents)):
        for i in range(len(TEXTS)):
            rows = embedded.tokens.of(i, i + 1)
            if kind_of(model) == SPARSE:
                words, values = rows.T
                rows = np.zeros((1, model.get_embedding_dimension()), np.float32)
                rows[0, words.astype(int)] = values
            found[f"{role}{i}"] = rows

    values, numbers, *_ = retrieve(model, encoded, TEXTS, TEXTS, len(TEXTS))
    scores = np.zeros((len(TEXTS), len(TEXTS)), np.float32)
    for row in range(len(TEXTS)):
        known = numbers[row] >= 0
        scores[row, numbers[row][known]] = values[row][known]
    return {**found, "scores": scores}


def differences(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the largest difference of query vectors, of document vectors (theirs rounded to float16, as ours are kept)
    and of scores. Raises where shapes differ."""
    worst = dict.fromkeys(WITHIN, 0.0)
    for name, values in ours.items():
        kind = name.rstrip("0123456789")
        beside = theirs[name].astype(np.float16).astype(np.float32) if kind == "document" else theirs[name]
        assert beside.shape == values.shape, (name, beside.shape, values.shape)
        worst[kind] = max(worst[kind], float(np.abs(beside - values).max(initial=0.0)))

    return worst


def come_back(made: Path) -> bool:
    """Read what a peer saved to ``theirs``, by name of a folder as a person would; True where all give the same."""
    workspace = Workspace(made / "workspace")
    fits = True
    for kept in sorted((made / "theirs").glob(f"*/{VECTORS}")):
        source = made / "models" / kept.parent.name
        model = load(resolve(str(source if source.exists() else kept.parent), workspace), "cpu")
        worst = differences(given_by(model), np.load(kept))
        print(f"{kept.parent.name}, read here: {worst}", flush=True)
        fits &= all(worst[kind] <= limit for kind, limit in WITHIN.items())
    return fits
