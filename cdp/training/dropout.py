"""Dropout on the CPU with masks from 16 random bits a value: torch's own draws took 10 to 13% of a step of minilm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

ATTENTION = nn.functional.scaled_dot_product_attention


class FastDropout(TorchFunctionMode):
    """While it is entered, torch's dropout and its attention with dropout are those below.

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
