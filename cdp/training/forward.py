"""The forward pass in training, of each kind of model: from features to embeddings, with gradients; sparse models'
words pooled without keeping logits; faster dropout on a CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from cdp.retrievers import MULTI_VECTOR, SPARSE

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


# A language model's head gives a logit for each word of the vocabulary at each token: half a gigabyte for a batch of
# passages, and as much again for the gradients of what is done with it. Pooling takes the highest of each word, and
# log(1 + ReLU) keeps their order, so the highest logits are looked for text by text, and a gradient goes back only to
# the token and the word that it comes from.


def pooled_weights(model: Any, features: dict[str, Any], role: str) -> Tensor:
    """Return the weights of texts, (n, words), as ``model(features)`` gives them; with gradients in less memory where
    the model is a language model with max pooling, else through all its logits."""
    pooling, transformer = model[-1], model.transformers_model
    head = transformer.get_output_embeddings() if transformer is not None and len(model) == 2 else None
    if not isinstance(head, nn.Linear) or getattr(pooling, "pooling_strategy", "") != "max":
        all_logits: Tensor = model(features, task=role)["sentence_embedding"]
        return all_logits

    with _passing_on(head):
        states = model[0](features)
    highest = _HighestLogits.apply(states["token_embeddings"], states["attention_mask"], head.weight, head.bias)
    weights = torch.log1p(torch.relu(highest))

    return torch.log1p(weights) if pooling.activation_function == "log1p_relu" else weights


@contextmanager
def _passing_on(head: nn.Linear) -> Iterator[None]:
    """Have the head hand on what it is given."""
    head.forward = lambda states: states
    try:
        yield
    finally:
        del head.forward  # the class's own again


class _HighestLogits(torch.autograd.Function):
    """The highest logit of each word over the tokens of a text: states (n, tokens, dim) give (n, words)."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, mask: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        highest = states.new_empty(len(states), len(weight))
        places = torch.empty(highest.shape, dtype=torch.long, device=states.device)
        for text, there in enumerate(mask.bool()):
            tokens = there.nonzero()[:, 0]
            highest[text], at = (states[text, tokens] @ weight.to(states.dtype).T).max(0)
            places[text] = tokens[at]

        ctx.save_for_backward(states, weight, places)
        ctx.has_bias = bias is not None
        return highest if bias is None else highest + bias.to(highest.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        states, weight, places = ctx.saved_tensors
        of_states, of_weight = torch.zeros_like(states), torch.zeros_like(weight)
        for text, of_words in enumerate(gradient):
            words = of_words.nonzero()[:, 0]  # ReLU sends nothing back to the others
            at, scale = places[text, words], of_words[words, None]
            of_states[text].index_add_(0, at, scale * weight[words].to(scale.dtype))
            of_weight.index_add_(0, words, (scale * states[text, at]).to(weight.dtype))

        return of_states, None, of_weight, gradient.sum(0) if ctx.has_bias else None


ATTENTION = nn.functional.scaled_dot_product_attention


class FastDropout(TorchFunctionMode):
    """While it is entered, torch's dropout and its attention with dropout are those below: masks from 16 random bits a
    value, where torch's own draws took 10 to 13% of a step of minilm.

    The masks come from torch's random state, so a resumed run and the second pass of GradCache draw the same ones.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}

        if func is nn.functional.dropout and kwargs.get("training") and not kwargs.get("inplace"):
            return dropout(args[0], kwargs["p"])
        plain = not kwargs.get("is_causal") and not kwargs.get("enable_gqa") and len(args) == 3
        if func is ATTENTION and kwargs.get("dropout_p") and plain:
            query, key, value = args
            return attention(query, key, value, kwargs.get("attn_mask"), kwargs["dropout_p"], kwargs.get("scale"))
        return func(*args, **kwargs)


def dropout(values: Tensor, p: float) -> Tensor:
    """Return ``values`` with each zero with probability ``p`` (to 2^-16), the others divided by 1 - ``p``."""
    if p <= 0.0 or p >= 1.0:
        return nn.functional.dropout(values, p)
    n = values.numel()
    drawn = torch.empty((n + 3) // 4, dtype=torch.int64).random_(-(2**63), None).view(torch.int16)[:n]
    kept = drawn.view(values.shape) >= round(p * 2**16) - 2**15
    return values * kept.to(values.dtype).mul_(1.0 / (1.0 - p))


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float, scale: float | None = None
) -> Tensor:
    """Return scaled dot-product attention (batch, heads, tokens, dim) with dropout; ``mask`` is True where it attends,
    or is added to the scores. As torch's, which passes over the scores three times more for rows without any True."""
    scores = (query * (scale or 1.0 / math.sqrt(query.shape[-1]))) @ key.transpose(-2, -1)
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    elif mask is not None:
        scores = scores + mask

    return dropout(scores.softmax(dim=-1), p) @ value
