"""The weights that a sparse model (SPLADE) gives words, in training: pooled at once, so that no logits are kept.

A language model's head gives a logit for each word of the vocabulary at each token: half a gigabyte for a batch of
passages, and as much again for the gradients of what is done with it. Pooling takes the highest of each word, and
log(1 + ReLU) keeps their order, so the highest logits are looked for text by text, and a gradient goes back only to the
token and the word that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


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
