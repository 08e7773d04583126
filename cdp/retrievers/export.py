"""A retriever as one ONNX graph from token ids to embedding, for programs without PyTorch.

``backend="onnx"`` of sentence-transformers needs optimum-onnx, which does not take transformers 5, so torch exports the
graph itself. The folder holds ``model.onnx`` (``input_ids`` and ``attention_mask``, int64 of shape (batch, tokens), to
``sentence_embedding``, float32 of shape (batch, dim)), ``tokenizer.json``, which cuts and pads, and the prompts.
"""

from __future__ import annotations

import logging
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdp.base.errors import ConfigError, ModelError
from cdp.base.workspace import write_bytes, write_json

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

NEEDED = ("onnx", "onnxruntime", "onnxscript")
TEXTS = ["what is a glacier", "a", "how ice shapes the valley below it " * 20]
TOLERANCE = 1e-3


def require_onnx() -> None:
    """Raise ConfigError if a library that the export needs is missing."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ConfigError(
            f"ONNX needs {' and '.join(missing)}, not installed here.", hint="pip install 'cdp-studio[onnx]'"
        )


def export(model: SentenceTransformer, folder: Path) -> float:
    """Write the model's ONNX folder and return the largest difference between the two's embeddings.

    ModelError for a model that has no such graph, or whose graph gives other embeddings.
    """
    import numpy as np
    import onnxruntime
    import torch
    from tokenizers import Tokenizer
    from torch import Tensor, nn

    first, rest = model[0], nn.ModuleList(list(model)[1:])
    table = first.embedding.weight if isinstance(getattr(first, "embedding", None), nn.EmbeddingBag) else None
    own = model.tokenizer if table is not None else getattr(model.tokenizer, "backend_tokenizer", None)
    if own is None or (table is None and not hasattr(first, "auto_model")):
        raise ModelError(f"A model that begins with {type(first).__name__} cannot be exported.")
    if not all(getattr(module, "include_prompt", True) for module in model):
        raise ModelError("A model whose pooling leaves the prompt out cannot be exported: the graph sees no prompt.")

    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.rest = first if table is not None else first.auto_model, rest

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            features: dict[str, Any] = {"attention_mask": attention_mask}
            if table is None:
                outputs = self.first(input_ids=input_ids, attention_mask=attention_mask)
                features["token_embeddings"] = outputs.last_hidden_state
            else:  # the mean of the tokens' vectors; of no token zeros, as EmbeddingBag gives
                counts = attention_mask.to(torch.float32).unsqueeze(-1)
                vectors = nn.functional.embedding(input_ids, self.first.embedding.weight) * counts
                features["sentence_embedding"] = vectors.sum(1) / counts.sum(1).clamp(min=1.0)
            for module in self.rest:
                features = module(features)
            return features["sentence_embedding"]

    positions = getattr(getattr(first, "config", None), "max_position_embeddings", None)
    tokens = torch.export.Dim("tokens", max=positions if isinstance(positions, int) and positions > 0 else 1 << 20)
    shape = {0: torch.export.Dim("batch"), 1: tokens}
    names = ["input_ids", "attention_mask"]
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it tells of libraries for images that are not there
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Graph().float().eval(),
            (torch.ones((2, 7), dtype=torch.long), torch.tensor([[1] * 7, [1] * 4 + [0] * 3])),
            str(folder / "model.onnx"),
            input_names=names,
            output_names=["sentence_embedding"],
            dynamic_shapes=dict.fromkeys(names, shape),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    tokenizer = Tokenizer.from_str(own.to_str())
    if isinstance(model.max_seq_length, int):
        tokenizer.enable_truncation(model.max_seq_length)
    if table is None:
        padding = model.tokenizer
        tokenizer.enable_padding(
            direction=padding.padding_side, pad_id=padding.pad_token_id or 0, pad_token=padding.pad_token or "[PAD]"
        )
    else:
        tokenizer.post_processor = None  # a static model averages the words alone
        tokenizer.enable_padding()
    write_bytes(folder / "tokenizer.json", tokenizer.to_str().encode())
    prompts = {role: model.prompts.get(role) or "" for role in ("query", "document")}
    write_json(folder / "prompts.json", prompts)

    encodings = tokenizer.encode_batch(TEXTS)
    arrays = [np.array([getattr(e, name) for e in encodings], np.int64) for name in ("ids", "attention_mask")]
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    (theirs,) = session.run(None, dict(zip(names, arrays, strict=True)))
    difference = float(np.abs(np.asarray(model.encode(TEXTS, prompt="", show_progress_bar=False)) - theirs).max())
    if not difference <= TOLERANCE:
        raise ModelError(f"The exported graph differs from the model by {difference:.2g}; nothing was written.")
    return difference
