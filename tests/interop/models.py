"""Tiny models as a training saves them, in all shapes that are written: tables, encoders, decoders, more modules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from cdp.retrievers import spelling
from cdp.retrievers.static import StaticModel
from tests.support_models import tiny_bert, tiny_decoder, tiny_static

TEXTS = ["hello world", "a longer text with many words in it", "x " * 300]
# Not the default, which a reader takes that passes over what it does not know.
ROPE_BASE = 500.0
VECTORS = "vectors.npy"


def models(folder: Path) -> dict[str, Any]:
    """Return the models by name; ``folder`` takes what they are made from."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

    bert, decoder = tiny_bert(folder / "bert"), tiny_decoder(folder / "decoder")
    config = json.loads((decoder / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": ROPE_BASE}
    (decoder / "config.json").write_text(json.dumps(config))

    def made(base: Path, pooling: str, *more: Any) -> Any:
        transformer = Transformer(str(base))
        transformer.max_seq_length = 64
        modules = [transformer, Pooling(transformer.get_embedding_dimension(), pooling), *more, Normalize()]
        return SentenceTransformer(modules=modules, device="cpu")

    return {
        "static": StaticModel.load(tiny_static(folder / "static"), "cpu"),
        "mean": made(bert, "mean"),
        "cls": made(bert, "cls"),
        "dense": made(bert, "mean", Dense(32, 8)),
        "decoder": made(decoder, "lasttoken"),
    }


def save_all(folder: Path) -> list[Path]:
    """Save each model with its vectors of ``TEXTS`` beside; return their folders."""
    return [save(model, folder / name) for name, model in models(folder / "bases").items()]


def save(model: Any, folder: Path) -> Path:
    """Save one model as ``save_all`` does; return the folder."""
    assert spelling.save(model, folder), f"{folder.name} has settings that older readers do not know"
    np.save(folder / VECTORS, model.encode(TEXTS))
    return folder
