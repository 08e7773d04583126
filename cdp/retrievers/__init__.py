"""The retrievers: one file per preset, one registry, and the way from a name to a loaded model.

Importing this loads no torch; calling ``load`` does.
"""

from __future__ import annotations

from cdp.retrievers.load import load, model_hash
from cdp.retrievers.presets import (
    DENSE,
    MULTI_VECTOR,
    PRESETS,
    PROTOCOLS,
    SPARSE,
    TRAINED_SIMILARITY,
    Default,
    Retriever,
)
from cdp.retrievers.resolve import ResolvedRetriever, in_cache, resolve

__all__ = [
    "DENSE",
    "MULTI_VECTOR",
    "PRESETS",
    "PROTOCOLS",
    "SPARSE",
    "TRAINED_SIMILARITY",
    "Default",
    "ResolvedRetriever",
    "Retriever",
    "in_cache",
    "load",
    "model_hash",
    "resolve",
]
