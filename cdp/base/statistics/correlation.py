"""Pearson's r and Spearman's ρ between few points, Fisher's interval, and what remains without each point in turn.

``scipy.stats`` has the same; to import it takes a second, which the first page of the dashboard would wait for.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError
from cdp.base.statistics.distributions import stdtr

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Pearson:
    """r over ``n`` points, its two-sided p, and Fisher's 95% interval (None with three points: it needs four)."""

    n: int
    r: float
    p: float
    interval: Range | None


def pearson(x: ArrayLike, y: ArrayLike) -> Pearson | None:
    """Pearson's correlation of points of shape (n,); None for fewer than three points or where one side is constant."""
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if xs.shape != ys.shape or xs.ndim != 1:
        raise InputError("A correlation needs as many x as y.")
    if len(xs) < 3 or np.ptp(xs) == 0 or np.ptp(ys) == 0:
        return None
    dx, dy = xs - xs.mean(), ys - ys.mean()
    r = float(np.clip(dx @ dy / np.sqrt((dx @ dx) * (dy @ dy)), -1.0, 1.0))
    degrees = len(xs) - 2
    p = 0.0 if abs(r) == 1 else float(2 * stdtr(degrees, -abs(r) * np.sqrt(degrees / (1 - r * r))))
    return Pearson(len(xs), r, p, fisher_interval(r, len(xs)))


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """The rank of each value, from 1; equal values share the mean of their ranks. Shape (n,)."""
    _, place, counts = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
    means = np.cumsum(counts) - (counts - 1) / 2
    return means[place]


def spearman(x: ArrayLike, y: ArrayLike) -> Pearson | None:
    """Spearman's ρ: ``pearson`` of the ranks, whose p is the usual approximation."""
    return pearson(ranks(x), ranks(y))


def fisher_interval(r: float, n: int, *, level: float = 0.95) -> Range | None:
    """Fisher's z interval: tanh(atanh r ± z/√(n − 3)); None for fewer than four points.

    R. A. Fisher 1921, Metron 1, 3–32. With four points it is wide and slightly conservative (covers 96%, see
    docs/METHODS.md); a bootstrap over four points covers far less than it says.
    """
    if n < 4:
        return None
    if abs(r) >= 1:
        return r, r
    half = NormalDist().inv_cdf(0.5 + level / 2) / (n - 3) ** 0.5
    centre = float(np.arctanh(r))
    return float(np.tanh(centre - half)), float(np.tanh(centre + half))


def leave_one_out(x: ArrayLike, y: ArrayLike) -> Range | None:
    """The smallest and the largest r when each point in turn is left out; None with three points or fewer."""
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(xs) < 4:
        return None
    rest = [pearson(np.delete(xs, i), np.delete(ys, i)) for i in range(len(xs))]
    values = [each.r for each in rest if each is not None]
    return (min(values), max(values)) if values else None
