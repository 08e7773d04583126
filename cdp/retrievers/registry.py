"""The registry of presets. Adding one = adding one file and its name here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cdp.retrievers.preset import Retriever
from cdp.retrievers.presets import contriever, minilm, qwen3_embedding, retromae, static_minilm

PRESETS: Mapping[str, Retriever] = MappingProxyType(
    {module.PRESET.name: module.PRESET for module in (static_minilm, minilm, contriever, retromae, qwen3_embedding)}
)
"""Every preset by its name, the ones that run anywhere first."""
