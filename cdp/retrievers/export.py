"""From a loaded model to its ONNX folder: one graph from token ids to embedding, and the same in int8."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from cdp.base.errors import ModelError
from cdp.base.workspace import write_bytes
from cdp.retrievers.exported import GRAPH, TOKENIZER, OnnxConfig

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"
TOKENS = 1 << 20
"""More tokens than any model takes: the graph itself sets no limit, the tokenizer does."""


class _TransformerGraph(nn.Module):
    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.transformer, self.rest = model[0].auto_model, nn.ModuleList(list(model)[1:])

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        tokens = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        features: dict[str, Any] = {"token_embeddings": tokens, "attention_mask": attention_mask}
        for module in self.rest:
            features = module(features)
        return features[OUTPUT]


class _StaticGraph(nn.Module):
    """The mean of the tokens' vectors; of no token at all zeros, as EmbeddingBag gives."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.table, self.rest = model[0].embedding.weight, nn.ModuleList(list(model)[1:])

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        counts = attention_mask.to(self.table.dtype).unsqueeze(-1)
        vectors = nn.functional.embedding(input_ids, self.table) * counts
        features = {OUTPUT: vectors.sum(1) / counts.sum(1).clamp(min=1.0)}
        for module in self.rest:
            features = module(features)
        return features[OUTPUT]


def export(model: SentenceTransformer, folder: Path, retriever: str, model_hash: str, form: str) -> None:
    """Write the folder of an exported model in fp32. ModelError for a model that has no such graph."""
    first = model[0]
    static = isinstance(getattr(first, "embedding", None), nn.EmbeddingBag)
    if not static and not hasattr(first, "auto_model"):
        raise ModelError(f"A model that begins with {type(first).__name__} cannot be exported.")
    if not all(getattr(module, "include_prompt", True) for module in model):
        raise ModelError("A model whose pooling leaves the prompt out cannot be exported: the graph sees no prompt.")
    graph = (_StaticGraph if static else _TransformerGraph)(model.float()).eval()
    ids = torch.ones((2, 7), dtype=torch.long)
    mask = torch.tensor([[1] * 7, [1] * 4 + [0] * 3])
    batch, tokens = torch.export.Dim("batch"), torch.export.Dim("tokens", max=_longest(model) or TOKENS)
    shape = {0: batch, 1: tokens}
    with torch.no_grad():
        torch.onnx.export(
            graph,
            (ids, mask),
            str(folder / GRAPH),
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            dynamic_shapes=dict.fromkeys(INPUTS, shape),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        dimension = int(graph(ids, mask).shape[1])
    length = model.max_seq_length if isinstance(model.max_seq_length, int) else None
    write_bytes(folder / TOKENIZER, _tokenizer(model, static, length).encode())
    prompts = {role: model.prompts.get(role) or "" for role in ("query", "document")}
    similarity = str(getattr(model.similarity_fn_name, "value", model.similarity_fn_name))
    OnnxConfig(form, dimension, length, similarity, prompts, retriever, model_hash).write(folder)


def _longest(model: SentenceTransformer) -> int | None:
    positions = getattr(getattr(model[0], "config", None), "max_position_embeddings", None)
    return positions if isinstance(positions, int) and positions > 0 else None


def _tokenizer(model: SentenceTransformer, static: bool, length: int | None) -> str:
    """The tokenizer as JSON, so that it alone does what the model does before the graph: special tokens, cut, pad."""
    from tokenizers import Tokenizer

    tokenizer = model.tokenizer if static else getattr(model.tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        raise ModelError("The model has no fast tokenizer, without which it cannot be exported.")
    copy = Tokenizer.from_str(tokenizer.to_str())
    side, pad, token = "right", 0, "[PAD]"
    if not static:
        own = model.tokenizer
        side, pad, token = own.padding_side, int(own.pad_token_id or 0), str(own.pad_token or "[PAD]")
    if length is not None:
        copy.enable_truncation(length)
    copy.enable_padding(direction=side, pad_id=pad, pad_token=token)
    value = json.loads(copy.to_str())
    if static:
        value["post_processor"] = None  # a static model averages the words alone
    return json.dumps(value, ensure_ascii=False)


def quantise(folder: Path) -> None:
    """Put an int8 graph in the place of the fp32 one: weights in int8, activations quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    whole, prepared = folder / "fp32.onnx", folder / "prepared.onnx"
    (folder / GRAPH).rename(whole)
    try:
        quant_pre_process(str(whole), str(prepared), skip_symbolic_shape=True)
        quantize_dynamic(str(prepared), str(folder / GRAPH), weight_type=QuantType.QInt8, per_channel=True)
    finally:
        whole.unlink()
        prepared.unlink(missing_ok=True)
