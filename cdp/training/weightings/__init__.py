"""How pairs are weighted, one module each. Adding a weighting is adding a file that declares a ``Weighting``."""

from __future__ import annotations

from cdp.base.registry import Registry
from cdp.training.weightings.base import Weighting

WEIGHTINGS: Registry[Weighting] = Registry("weighting", Weighting, __name__)

__all__ = ["WEIGHTINGS", "Weighting"]
