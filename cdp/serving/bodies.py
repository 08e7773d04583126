"""JSON by pydantic's own writer: several times as fast as Python's for thousands of numbers, and as exact."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic_core import to_json as to_json

AT_ONCE = 128
"""Vectors that are written without a look at other requests: some milliseconds."""


def vector_value(vector: np.ndarray, encoding_format: str) -> str | list[float]:
    """A vector (dim,) as the API writes it: the numbers, or their float32 bytes (little-endian) in base64."""
    if encoding_format == "base64":
        return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode("ascii")
    values: list[float] = vector.tolist()
    return values


async def embeddings_body(vectors: Sequence[np.ndarray], encoding_format: str, rest: dict[str, Any]) -> bytes:
    """The body of an answer with these vectors under ``data`` and ``rest`` beside it. A large one is written in
    slices, so that a request of 2,000 texts does not hold up those of one."""
    slices = []
    for start in range(0, len(vectors), AT_ONCE):
        rows = [
            {"object": "embedding", "index": start + i, "embedding": vector_value(vector, encoding_format)}
            for i, vector in enumerate(vectors[start : start + AT_ONCE])
        ]
        slices.append(to_json(rows)[1:-1])
        if start + AT_ONCE < len(vectors):
            await asyncio.sleep(0)
    head = to_json({"object": "list", **rest})[:-1]
    return head + b',"data":[' + b",".join(slices) + b"]}"
