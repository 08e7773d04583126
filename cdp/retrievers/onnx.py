"""A retriever in ONNX: transformer, pooling and normalisation in one graph, run by onnxruntime.

The folder holds ``model.onnx`` (``input_ids`` and ``attention_mask``, int64 of shape (batch, tokens), to
``sentence_embedding``, float32 of shape (batch, dim)), ``tokenizer.json``, which cuts and pads, and
``onnx_config.json``. sentence-transformers' own ONNX backend needs optimum, which does not take today's transformers.
``OnnxModel`` answers to the calls of ``SentenceTransformer`` that we make, as ``StaticModel`` does, so an exported
model is evaluated and searched with like any other, and neither library is loaded for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from cdp.base.errors import ModelError
from cdp.base.workspace import sha256_file
from cdp.retrievers.exported import GRAPH, TOKENIZER, OnnxConfig, require_runtime


class OnnxGraph(nn.Module):
    """The graph with its tokenizer; it has no parameter, so nothing in it is trained or cast."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.facts = folder, OnnxConfig.read(folder)
        self.tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))

    @cached_property
    def session(self) -> Any:
        """onnxruntime's session, with as many threads as torch has."""
        require_runtime()
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3  # errors
        wanted = ("CUDAExecutionProvider", "CPUExecutionProvider")
        providers = [name for name in wanted if name in onnxruntime.get_available_providers()]
        try:
            return onnxruntime.InferenceSession(str(self.folder / GRAPH), options, providers=providers)
        except Exception as error:  # onnxruntime has many kinds, all of its own
            raise ModelError(f"{self.folder / GRAPH} cannot be run: {str(error).splitlines()[0]}") from error

    @property
    def content_hash(self) -> str:
        """16 hex digits of the graph, which no tensor of torch stands for."""
        return sha256_file(self.folder / GRAPH)[:16]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """(n_texts, dim), float32."""
        encodings = self.tokenizer.encode_batch(list(texts))
        ids = np.array([encoding.ids for encoding in encodings], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        if ids.shape[1] == 0:  # nothing but empty texts: one token that does not count
            ids = mask = np.zeros((len(encodings), 1), np.int64)
        (vectors,) = self.session.run(None, {"input_ids": ids, "attention_mask": mask})
        return np.asarray(vectors, np.float32)


class OnnxModel(nn.Sequential):
    """An exported model as a retriever."""

    transformers_model = None

    def __init__(self, folder: Path, prompts: dict[str, str], similarity: str) -> None:
        super().__init__(OnnxGraph(folder))
        self.prompts, self.similarity_fn_name = dict(prompts), similarity
        self.device = torch.device("cpu")

    @property
    def graph(self) -> OnnxGraph:
        graph = self[0]
        assert isinstance(graph, OnnxGraph)
        return graph

    @property
    def tokenizer(self) -> Tokenizer:
        return self.graph.tokenizer

    @property
    def max_seq_length(self) -> float:
        """In tokens; infinite where nothing is cut."""
        truncation = self.tokenizer.truncation
        return int(truncation["max_length"]) if truncation else float("inf")

    @max_seq_length.setter
    def max_seq_length(self, limit: int) -> None:
        longest = self.graph.facts.max_length
        self.tokenizer.enable_truncation(min(limit, longest) if longest is not None else limit)

    def get_embedding_dimension(self) -> int:
        return self.graph.facts.dimension

    def encode(self, texts: Sequence[str], *, prompt: str = "", batch_size: int = 32, **ignored: Any) -> np.ndarray:
        """Embeddings (n_texts, dim), as a NumPy array whatever else is asked for. Texts of one length share a batch.

        TypeError for a single text, whose letters would be embedded one by one.
        """
        if isinstance(texts, str):
            raise TypeError("encode takes a list of texts, not a single one.")
        result = np.zeros((len(texts), self.get_embedding_dimension()), np.float32)
        order = np.argsort([len(text) for text in texts], kind="stable")
        for start in range(0, len(texts), batch_size):
            rows = order[start : start + batch_size]
            result[rows] = self.graph.embed([f"{prompt}{texts[row]}" for row in rows])
        return result

    def encode_query(self, texts: Sequence[str], *, prompt: str | None = None, **options: Any) -> np.ndarray:
        return self.encode(texts, prompt=self.prompts["query"] if prompt is None else prompt, **options)

    def encode_document(self, texts: Sequence[str], *, prompt: str | None = None, **options: Any) -> np.ndarray:
        return self.encode(texts, prompt=self.prompts["document"] if prompt is None else prompt, **options)
