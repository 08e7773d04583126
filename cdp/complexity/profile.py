"""The distribution of a set's CW values: the mean's interval, spread, the lines at 7 and 10."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError
from cdp.base.statistics import bootstrap_interval

# Below it the paper advises against diverse queries (tab:cw_threshold).
LOW = 7
# Above it the paper recommends them; from LOW to HIGH, both included, it says: test.
HIGH = 10


@dataclass(frozen=True, slots=True)
class CwProfile:
    """The distribution of CW over ``n`` queries. ``histogram[i]`` counts the queries with CW = i.

    ``below``, ``between`` and ``above`` are shares in [0, 1]: CW < 7, 7 ≤ CW ≤ 10, CW > 10. ``sd`` is the sample's
    standard deviation (0 for one query).
    """

    n: int
    mean: float
    median: float
    lower_quartile: float
    upper_quartile: float
    sd: float
    minimum: int
    maximum: int
    histogram: tuple[int, ...]
    below: float
    between: float
    above: float
    interval: tuple[float, float]


def profile(cw: ArrayLike) -> CwProfile:
    """The profile of CW values of shape (n,), with the 95% bootstrap interval of their mean. InputError if empty."""
    values = _values(cw).astype(np.int64)
    lower, median, upper = np.percentile(values, [25, 50, 75])
    return CwProfile(
        n=len(values),
        mean=float(values.mean()),
        median=float(median),
        lower_quartile=float(lower),
        upper_quartile=float(upper),
        sd=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        minimum=int(values.min()),
        maximum=int(values.max()),
        histogram=tuple(np.bincount(values).tolist()),
        below=float((values < LOW).mean()),
        between=float(((values >= LOW) & (values <= HIGH)).mean()),
        above=float((values > HIGH).mean()),
        interval=cw_interval(values),
    )


def cw_interval(cw: ArrayLike, *, seed: int = 0) -> tuple[float, float]:
    """Bootstrap percentile interval of the mean CW, seeded. InputError if there are no values."""
    return bootstrap_interval(_values(cw), seed=seed)


def _values(cw: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(cw, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise InputError("There are no queries to profile.")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InputError("CW must be finite and not negative.")
    return values
