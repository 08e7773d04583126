"""The forward pass of a model of each kind in training: from features to embeddings, with gradients."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from cdp.retrievers import MULTI_VECTOR, SPARSE
from cdp.training.word_weights import pooled_weights

# Ids of tokens whose states are given in their place: no transformer takes both.
IDS = "ids_of_states"


def forward(model: Any, kind: str, features: dict[str, Any], role: str = "") -> Tensor:
    """Return what ``model`` makes of texts, by its ``kind``: (n, dim) of dense models, (n, words) of sparse ones, of
    late interaction (n, tokens, dim), zero where a text has no more tokens. ``role`` as ``TokenStore.role``."""
    if kind == SPARSE:
        return pooled_weights(model, features, role)

    if kind == MULTI_VECTOR:
        output = _above_states(model, features, role) if IDS in features else model(features, task=role)
        tokens: Tensor = output["token_embeddings"] * output["attention_mask"].unsqueeze(2)
        return tokens

    of_role = {"task": role} if role else {}
    embedding: Tensor = model(features, **of_role)["sentence_embedding"]
    return embedding


def _above_states(model: Any, features: dict[str, Any], role: str) -> dict[str, Any]:
    """As the model's own forward, but what follows the transformer is given the ids."""
    first, *rest = model
    ids = features.pop(IDS)
    features = {**first(features), "input_ids": ids}

    for module in rest:
        takes_role = "task" in getattr(module, "forward_kwargs", ())
        features = module(features, task=role) if takes_role else module(features)

    return features
