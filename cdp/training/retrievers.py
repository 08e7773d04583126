"""The presets under the name by which they were known before retrievers had a room of their own."""

from __future__ import annotations

from cdp.retrievers import PRESETS

__all__ = ["PRESETS"]
