"""No weighting: plain InfoNCE."""

from __future__ import annotations

from cdp.training.weightings import Weighting, equal

WEIGHTING = Weighting(
    "none", "Equal weights", "Every pair counts the same: plain InfoNCE.", equal, paper="none", order=10
)
