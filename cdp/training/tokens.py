"""Texts tokenised once before training, and cut into padded batches of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from cdp.base.errors import ModelError
from cdp.base.text import PhaseProgress, Progress, encodable, silent
from cdp.retrievers import DENSE
from cdp.retrievers.load import is_routed, kind_of
from cdp.retrievers.static import is_static
from cdp.training.pairs import PairSet

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


CHUNK = 512
PLAIN_FEATURES = {"input_ids", "attention_mask", "token_type_ids", "modality", "prompt_length", "offsets", "task"}


@dataclass
class TokenStore:
    """Token ids of n texts in one flat array: text i is ``ids[offsets[i]:offsets[i + 1]]``; ``lengths`` (n,)."""

    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    pad_id: int = 0
    pad_left: bool = False
    token_types: bool = False
    bags: bool = False
    """For a table, which takes the tokens of all texts in a row, and where each text's begin."""
    constants: dict[str, Any] = field(default_factory=dict)
    role: str = ""
    """``query`` or ``document`` where the model may read the two differently, as late interaction and routers do."""

    def __post_init__(self) -> None:
        self.lengths = np.diff(self.offsets)

    def features(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        """What the model's forward takes for these texts, padded to the longest of them."""
        lengths = self.lengths[rows]
        if self.bags:
            in_a_row = [self.ids[self.offsets[row] : self.offsets[row + 1]] for row in rows.tolist()]
            ids = torch.from_numpy(np.concatenate(in_a_row))
            return {"input_ids": ids, "offsets": torch.from_numpy(np.cumsum(lengths) - lengths)}

        width = int(lengths.max(initial=1))
        columns = np.arange(width)
        start = (width - lengths)[:, None] if self.pad_left else np.zeros((len(rows), 1), dtype=np.int64)
        mask = (columns >= start) & (columns < start + lengths[:, None])
        source = np.where(mask, self.offsets[rows][:, None] + columns - start, 0)
        ids = np.where(mask, self.ids[source], self.pad_id)
        batch = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask.astype(np.int64))}
        if self.token_types:
            batch["token_type_ids"] = torch.zeros_like(batch["input_ids"])
        return {**batch, **self.constants}

    def content(self) -> Iterator[bytes | memoryview]:
        """All that the texts are made of, for a hash."""
        yield self.offsets.data
        yield self.ids.data


def tokenise(
    model: SentenceTransformer,
    texts: Sequence[str],
    prompt: str = "",
    report: PhaseProgress = silent,
    *,
    role: str = "document",
) -> TokenStore:
    """The texts as the model's own preprocessing turns them into tokens, prompt included; ``report`` hears progress.

    ModelError for a model that reads more of a text than its tokens.
    """
    flat: list[NDArray[np.int64]] = []
    lengths: list[NDArray[np.int64]] = []
    constants: dict[str, Any] = {}
    token_types = False
    bags = False
    options = {} if kind_of(model) == DENSE and not is_routed(model) else {"task": role}
    for first in range(0, len(texts), CHUNK):
        chunk = [encodable(text) for text in texts[first : first + CHUNK]]
        features = model.preprocess(chunk, prompt=prompt or None, **options)
        ids = features.get("input_ids")
        types = features.get("token_type_ids")

        more = bool(set(features) - PLAIN_FEATURES) or (types is not None and bool(types.any()))
        if more or not isinstance(ids, torch.Tensor):
            raise ModelError("The model reads more of a text than its tokens, so it cannot be trained here.")

        if bags := "offsets" in features:
            ends = torch.cat([features["offsets"][1:], torch.tensor([len(ids)])])
            flat.append(ids.numpy())
            lengths.append((ends - features["offsets"]).numpy())
        else:
            mask = features["attention_mask"].bool()
            flat.append(ids[mask].numpy())
            lengths.append(mask.sum(dim=1).numpy())
            token_types = types is not None
            constants = {key: features[key] for key in ("modality", "prompt_length") if key in features}

        report(first + len(chunk), len(texts))

    tokenizer = None if is_static(model) else model.tokenizer
    return TokenStore(
        ids=np.concatenate([np.zeros(0, np.int64), *flat]),
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([np.zeros(0, np.int64), *lengths]))]),
        pad_id=int(getattr(tokenizer, "pad_token_id", None) or 0),
        pad_left=getattr(tokenizer, "padding_side", "right") == "left",
        token_types=token_types,
        bags=bags,
        constants=constants,
        role=options.get("task", ""),
    )


# What one more forward and backward pass costs on a CPU, in tokens of work; measured on MiniLM with two cores.
CPU_OVERHEAD = 48.0

# The same on a GPU, where a pass over few tokens is bound by kernel launches.
GPU_OVERHEAD = 4096.0


def overhead_on(device: torch.device) -> float:
    """Return what one more pass costs there, for ``groups``."""
    return CPU_OVERHEAD if device.type == "cpu" else GPU_OVERHEAD


def groups(lengths: NDArray[np.int64], overhead: float, largest: int | None = None) -> list[NDArray[np.int64]]:
    """Split texts into groups of similar length so that the least padding is computed.

    Minimises Σ (longest of the group · size of the group + overhead) exactly, by dynamic programming over the distinct
    lengths, where ``overhead`` is the cost of one more forward pass, in tokens. Groups above ``largest`` texts are cut.
    Returns positions into ``lengths``; every position occurs once.
    """
    order = np.argsort(-lengths, kind="stable")
    distinct, first = np.unique(-lengths[order], return_index=True)

    widths, starts = -distinct, np.append(first, len(order))
    best = np.zeros(len(widths) + 1)
    cut = np.zeros(len(widths) + 1, dtype=np.int64)
    for end in range(1, len(widths) + 1):
        costs = best[:end] + widths[:end] * (starts[end] - starts[:end]) + overhead
        cut[end] = int(costs.argmin())
        best[end] = costs[cut[end]]

    batch: list[NDArray[np.int64]] = []
    end = len(widths)
    while end > 0:
        members = order[starts[cut[end]] : starts[end]]
        size = largest or len(members)
        batch[:0] = [members[i : i + size] for i in range(0, len(members), size)]
        end = int(cut[end])

    return batch


# Queries, documents and, where there are any, reasoned queries.
Stores = tuple[TokenStore, TokenStore, TokenStore | None]


def stores_of(model: SentenceTransformer, pairs: PairSet, report: Progress = silent) -> Stores:
    """Return the tokens of a pair set's queries, documents and, where RI needs them, reasoned queries."""
    prompt, of_documents = model.prompts["query"] or "", model.prompts["document"] or ""
    queries = tokenise(model, pairs.queries, prompt, partial(report, "tokenising queries"), role="query")
    documents = tokenise(model, pairs.documents, of_documents, partial(report, "tokenising documents"))
    if pairs.reasoned is None:
        return queries, documents, None
    told = partial(report, "tokenising reasoned queries")
    return queries, documents, tokenise(model, pairs.reasoned, prompt, told, role="query")
