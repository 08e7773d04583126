"""How long the documents are: exact quantiles and a histogram for the page, from four bytes per document."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

N_BINS = 30

_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")


def count_words(text: str) -> int:
    """Runs of non-space characters; each Han character or kana counts as one, for there are no spaces between them."""
    if text.isascii():
        return len(text.split())
    runs = _UNSPACED.findall(text)
    if not runs:
        return len(text.split())
    return sum(map(len, runs)) + len(_UNSPACED.sub(" ", text).split())


@dataclass(frozen=True)
class Distribution:
    """Lengths of n documents.

    ``edges`` (n_bins + 1) are whole numbers up to the 99th percentile: bin i counts the lengths from ``edges[i]`` to
    below ``edges[i + 1]``, and ``above`` those beyond the last edge.
    """

    n: int
    total: int
    min: int
    q1: float
    median: float
    q3: float
    p95: float
    max: int
    mean: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    above: int

    @classmethod
    def of(cls, lengths: array[int]) -> Distribution:
        """The distribution of at least one length."""
        values = np.frombuffer(lengths, dtype=np.uint32)
        q1, median, q3, p95, p99 = (float(q) for q in np.percentile(values, [25, 50, 75, 95, 99]))
        low = int(values.min())
        span = int(np.ceil(p99)) - low + 1
        width = -(-span // N_BINS)
        edges = low + width * np.arange(-(-span // width) + 1)
        counts, _ = np.histogram(values[values < edges[-1]], bins=edges)
        return cls(
            n=len(values),
            total=int(values.sum(dtype=np.int64)),
            min=low,
            q1=q1,
            median=median,
            q3=q3,
            p95=p95,
            max=int(values.max()),
            mean=float(values.mean()),
            edges=tuple(int(edge) for edge in edges),
            counts=tuple(int(count) for count in counts),
            above=int((values >= edges[-1]).sum()),
        )

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Distribution:
        return cls(**{**value, "edges": tuple(value["edges"]), "counts": tuple(value["counts"])})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
