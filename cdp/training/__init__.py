"""Training a retriever: presets, pairs, weights, the loss, the loop and its worker.

Importing the package loads no torch: the loss is imported when it is first asked for.
"""

from __future__ import annotations

from typing import Any

from cdp.training.retrievers import PRESETS, ResolvedRetriever, Retriever, load, model_hash, resolve

__all__ = [
    "PRESETS",
    "ResolvedRetriever",
    "Retriever",
    "WeightedInfoNCELoss",
    "load",
    "model_hash",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name == "WeightedInfoNCELoss":
        from cdp.training.loss import WeightedInfoNCELoss

        return WeightedInfoNCELoss
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
