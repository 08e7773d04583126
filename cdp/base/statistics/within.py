"""A slope within clusters, at the level of single observations: what single queries say of a relation.

A random intercept for each cluster, with the cluster's mean as a second covariate (Mundlak 1978, Econometrica 46,
69–85), leaves for the slope within clusters the estimate of fixed effects. Its model-based error takes the clusters'
slopes to be equal; here the interval is Student's t over the clusters' own slopes (Ibragimov & Müller 2010, J. Bus.
Econ. Stat. 28, 453–468), which holds when they differ and with few clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdp.base.statistics.distributions import stdtr, stdtrit

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class WithinSlope:
    """``slope`` is the mean of the clusters' own slopes, with its 95% interval and two-sided p; ``pooled`` the slope of
    the model with a random intercept (Mundlak), in which large clusters count more."""

    slope: float
    low: float
    high: float
    p: float
    pooled: float
    n_clusters: int
    n: int


def within_slope(clusters: Sequence[tuple[ArrayLike, ArrayLike]], *, level: float = 0.95) -> WithinSlope | None:
    """The slope of y on x within clusters, each (x, y) of shape (n,).

    A cluster with fewer than three points or one x has no slope and is left out; None with fewer than two others.
    """
    slopes, products, squares, n = [], 0.0, 0.0, 0
    for xs, ys in clusters:
        x, y = np.asarray(xs, np.float64), np.asarray(ys, np.float64)
        if len(x) < 3 or np.ptp(x) == 0:
            continue
        dx = x - x.mean()
        product, square = float(dx @ (y - y.mean())), float(dx @ dx)
        slopes.append(product / square)
        products, squares, n = products + product, squares + square, n + len(x)
    if len(slopes) < 2:
        return None
    mean, error = float(np.mean(slopes)), float(np.std(slopes, ddof=1)) / len(slopes) ** 0.5
    free = len(slopes) - 1
    reach = float(stdtrit(free, 0.5 + level / 2)) * error
    p = float(2 * stdtr(free, -abs(mean) / error)) if error > 0 else float(mean == 0)
    return WithinSlope(mean, mean - reach, mean + reach, p, products / squares, len(slopes), n)
