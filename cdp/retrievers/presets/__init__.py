"""The presets, one module each. Adding a preset is adding a file that declares a ``Retriever``."""

from __future__ import annotations

from cdp.base.registry import Registry
from cdp.retrievers.preset import Retriever

PRESETS: Registry[Retriever] = Registry("preset", Retriever, __name__)
