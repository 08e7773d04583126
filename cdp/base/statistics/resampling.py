"""How sure a mean is: the bootstrap interval used for CW and for every metric."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError

_RESAMPLES = 2000
_FEW_LEVELS = 512
_DRAW_COST = 16
"""Drawing how often one level occurs takes as long as picking so many values."""
_MANY_VALUES = 5_000
_BLOCK = 100_000


def bootstrap_interval(values: ArrayLike, *, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Percentile interval (Efron 1979) of the mean over 2,000 resamples of ``values``, shape (n,).

    Values with few distinct levels are resampled by drawing how often each level occurs (the same distribution at a
    fraction of the cost). Above 5,000 values with many levels the bootstrap's normal limit is used.
    """
    data = np.asarray(values, dtype=np.float64)
    if len(data) == 0:
        raise InputError("There are no values, so there is no interval.")
    tails = [50 * (1 - level), 50 * (1 + level)]
    rng = np.random.default_rng(seed)
    distinct, counts = np.unique(data, return_counts=True)
    if len(distinct) <= _FEW_LEVELS and _DRAW_COST * len(distinct) < len(data):
        means = rng.multinomial(len(data), counts / len(data), size=_RESAMPLES) @ distinct / len(data)
    elif len(data) > _MANY_VALUES:
        reach = NormalDist().inv_cdf(0.5 + level / 2) * float(data.std()) / len(data) ** 0.5
        return float(data.mean()) - reach, float(data.mean()) + reach
    else:
        means = _resampled_means(data, rng)
    low, high = np.percentile(means, tails)
    return float(low), float(high)


def _resampled_means(data: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Means of resamples, a few at a time: blocks that fit in a processor's cache are several times as fast."""
    step = max(1, _BLOCK // len(data))
    parts = [
        data[rng.integers(0, len(data), size=(min(step, _RESAMPLES - start), len(data)))].mean(axis=1)
        for start in range(0, _RESAMPLES, step)
    ]
    return np.concatenate(parts)
