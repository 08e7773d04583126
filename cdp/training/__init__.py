"""Training a retriever: pairs, weights, the loss and the loop.

Importing the package loads no torch: the loss is imported when it is first asked for.
"""

from __future__ import annotations

from typing import Any

__all__ = ["WeightedInfoNCELoss"]


def __getattr__(name: str) -> Any:
    if name == "WeightedInfoNCELoss":
        from cdp.training.loss import WeightedInfoNCELoss

        return WeightedInfoNCELoss
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
