"""Static embedding models, token tables averaged over each text, without sentence-transformers.

To embed with such a table takes a tokenizer and one operation of torch, yet ``import sentence_transformers`` costs a
process five to nine CPU seconds, which is most of what a small training, evaluation or search then takes. So these
models, the default of a machine without a GPU, are loaded without it: ``StaticModel`` answers to the calls of
``SentenceTransformer`` that we make, gives the same numbers, and reads and writes the same files (tests compare both
ways). Every other model is a ``SentenceTransformer``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from cdp.base.workspace import parse_json
from cdp.retrievers.model_files import MODULES, USAGE, WEIGHTS

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


# About 200,000 passages. What comes when it is full is tokenised each time: to forget old texts for new ones would
# forget all of them where more texts than fit are encoded in turn.
LIMIT_BYTES = 256 * 2**20

# What an entry takes beside its text and ids: an array's header and a place in a dictionary.
ENTRY_BYTES = 200

Ids = NDArray[np.int32]


def token_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Ids]:
    """The ids of each text, without special tokens."""
    encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [np.array(encoding.ids, np.int32) for encoding in encodings]


class TokenMemo:
    """Ids by tokenizer and text, for all models of a process that it is given to; at most ``limit_bytes``."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.nbytes = 0
        self._tables: dict[tuple[str, str], dict[str, Ids]] = {}

    def ids(self, tokenizer: Tokenizer, content: str, texts: Sequence[str]) -> list[Ids]:
        """As ``token_ids`` gives them. ``content`` is the tokenizer's hash; where it cuts texts is looked at here, for
        that can be set at any time."""
        table = self._tables.setdefault((content, json.dumps(tokenizer.truncation)), {})
        unknown = list(dict.fromkeys(text for text in texts if text not in table))
        fresh = dict(zip(unknown, token_ids(tokenizer, unknown), strict=True)) if unknown else {}
        for text, ids in fresh.items():
            size = ENTRY_BYTES + ids.nbytes + sys.getsizeof(text)
            if self.nbytes + size <= self.limit_bytes:
                table[text] = ids
                self.nbytes += size
        return [table[text] if text in table else fresh[text] for text in texts]


# What sentence-transformers calls the module in `modules.json` up to version 5; later ones know that name, too.
TYPE = "sentence_transformers.models.StaticEmbedding"

TOKENIZER = "tokenizer.json"
# What a model's configuration may say. Any other key, such as a dimension to cut to, is for the library to heed.
UNDERSTOOD = {"model_type", "__version__", "prompts", "default_prompt_name", "similarity_fn_name"}


class StaticEmbedding(nn.Module):
    """The table and its tokenizer. The name is part of a model's hash, and the library's."""

    def __init__(self, tokenizer: Tokenizer, table: Tensor) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag.from_pretrained(table, freeze=False)
        self.tokenizer = tokenizer
        self.tokenizer.no_padding()

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        features["sentence_embedding"] = self.embedding(features["input_ids"], features["offsets"])
        return features


class StaticModel(nn.Sequential):
    """One ``StaticEmbedding`` as a retriever, on ``device`` as torch names it."""

    transformers_model = None

    def __init__(self, tokenizer: Tokenizer, table: Tensor, device: str = "cpu") -> None:
        super().__init__(StaticEmbedding(tokenizer, table))
        self.prompts: dict[str, str] = {"query": "", "document": ""}
        self._similarity = "cosine"
        self._memo: TokenMemo | None = None
        self._tokenizer_hash = ""
        self.to(device)

    @property
    def tokenizer(self) -> Tokenizer:
        return self[0].tokenizer

    @property
    def device(self) -> torch.device:
        weight = self[0].embedding.weight
        assert isinstance(weight, Tensor)
        return weight.device

    @property
    def max_seq_length(self) -> float:
        """Nothing is cut, unless the tokenizer does."""
        return float("inf")

    @property
    def similarity_fn_name(self) -> str:
        return self._similarity

    @similarity_fn_name.setter
    def similarity_fn_name(self, value: str) -> None:
        self._similarity = str(getattr(value, "value", value))

    def get_embedding_dimension(self) -> int:
        return int(self[0].embedding.embedding_dim)

    def remember(self, memo: TokenMemo) -> None:
        """Take token ids from ``memo`` from now on, and leave there what it lacks. Embeddings stay the same."""
        # Of everything that the tokenizer is made of, as it would be saved.
        saved = self.tokenizer.to_str().encode("utf-8", "surrogatepass")
        self._memo, self._tokenizer_hash = memo, hashlib.sha256(saved).hexdigest()

    def gradient_checkpointing_enable(self, options: dict[str, Any] | None = None) -> None:
        """There is nothing to recompute."""

    def preprocess(self, texts: Sequence[str], prompt: str | None = None) -> dict[str, Tensor]:
        """``input_ids`` (tokens of all texts) and ``offsets`` (n_texts,), where each text's begin."""
        prompted = [prompt + text for text in texts] if prompt else list(texts)
        if self._memo is None:
            ids = token_ids(self.tokenizer, prompted)
        else:
            ids = self._memo.ids(self.tokenizer, self._tokenizer_hash, prompted)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        flat = np.concatenate([np.zeros(0, np.int64), *ids])
        return {"input_ids": torch.from_numpy(flat), "offsets": torch.from_numpy(np.cumsum(lengths) - lengths)}

    @torch.inference_mode()
    def encode(self, texts: Sequence[str], *, prompt: str = "", batch_size: int = 32, **ignored: Any) -> np.ndarray:
        """Embeddings (n_texts, dim), always as a NumPy array.

        TypeError for a single text, whose letters would be embedded one by one.
        """
        if isinstance(texts, str):
            raise TypeError("encode takes a list of texts, not a single one.")
        # The table is asked without the modules around it: for a single text those take as long as the rest.
        table = self[0].embedding
        device = table.weight.device
        parts = []
        for start in range(0, len(texts), batch_size):
            features = self.preprocess(texts[start : start + batch_size], prompt)
            embedded = table(features["input_ids"].to(device), features["offsets"].to(device))
            parts.append(embedded.float().cpu().numpy())
        if len(parts) == 1:
            return np.asarray(parts[0])
        return np.concatenate([np.zeros((0, self.get_embedding_dimension()), np.float32), *parts])

    def encode_query(self, texts: Sequence[str], *, prompt: str | None = None, **options: Any) -> np.ndarray:
        return self.encode(texts, prompt=self.prompts["query"] if prompt is None else prompt, **options)

    def encode_document(self, texts: Sequence[str], *, prompt: str | None = None, **options: Any) -> np.ndarray:
        return self.encode(texts, prompt=self.prompts["document"] if prompt is None else prompt, **options)

    def save(self, folder: str, create_model_card: bool = False) -> None:
        """Write the files that ``SentenceTransformer.save`` writes for such a model."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        save_file(self[0].state_dict(), target / WEIGHTS)
        self.tokenizer.save(str(target / TOKENIZER))
        config = {
            "model_type": "SentenceTransformer",
            "__version__": {
                "sentence_transformers": version("sentence-transformers"),
                "transformers": version("transformers"),
                "pytorch": torch.__version__,
            },
            "prompts": self.prompts,
            "default_prompt_name": None,
            "similarity_fn_name": self.similarity_fn_name,
        }

        (target / USAGE).write_text(json.dumps(config, indent=2, sort_keys=True), encoding="utf-8")
        modules = [{"idx": 0, "name": "0", "path": "", "type": TYPE}]
        (target / MODULES).write_text(json.dumps(modules, indent=2), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, device: str = "cpu") -> Self | None:
        """The model that is saved in ``folder``; None where it is anything but a table alone."""
        modules, config = _json(folder / MODULES), _json(folder / USAGE)
        if not isinstance(config, dict) or not set(config) <= UNDERSTOOD or config.get("default_prompt_name"):
            return None
        if not isinstance(modules, list) or len(modules) != 1 or not _is_table(modules[0]):
            return None
        with safe_open(folder / WEIGHTS, "pt") as tensors:
            if list(tensors.keys()) != ["embedding.weight"]:
                return None
            table = tensors.get_tensor("embedding.weight")
        model = cls(Tokenizer.from_file(str(folder / TOKENIZER)), table, device)
        model.prompts |= {role: prompt or "" for role, prompt in (config.get("prompts") or {}).items()}
        model.similarity_fn_name = config.get("similarity_fn_name") or "cosine"
        return model


def is_static(model: Any) -> bool:
    """Return True if the first module is a table of token vectors, the library's or ours."""
    return isinstance(getattr(model[0], "embedding", None), nn.EmbeddingBag)


def _is_table(module: Any) -> bool:
    return (
        isinstance(module, dict)
        and str(module.get("type")).rpartition(".")[2] == "StaticEmbedding"
        and str(module.get("type")).startswith("sentence_transformers.")
        and module.get("path") == ""
        and "kwargs" not in module
    )


def _json(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def token_counts(model: SentenceTransformer, texts: Sequence[str], prompt: str = "") -> tuple[list[int], list[bool]]:
    """(tokens read, whether more were there), each (n,): with the prompt and the special tokens, as ``encode`` reads
    the texts. Words, and nothing cut, for a model whose tokenizer is not one of the usual libraries'."""
    inputs = [prompt + text for text in texts]
    tokenizer = model.tokenizer
    if hasattr(tokenizer, "encode_batch"):  # the library tokenizers itself, in a static model
        encodings = tokenizer.encode_batch(inputs, add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings], [bool(encoding.overflowing) for encoding in encodings]
    if not callable(tokenizer):
        return [len(text.split()) for text in inputs], [False] * len(inputs)
    rows = tokenizer(inputs, padding=False, truncation=False, return_attention_mask=False, verbose=False)["input_ids"]
    limit = model.max_seq_length or max(map(len, rows), default=0)
    return [min(len(row), limit) for row in rows], [len(row) > limit for row in rows]
