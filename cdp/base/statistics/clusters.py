"""Intervals of few independent values, such as one mean per dataset, and of where several lines cross zero.

With as many measurements in each cluster (each condition on each dataset) Student's t over the cluster means is the
exact cluster-aware interval; cluster-robust "sandwich" errors are too small with so few clusters (Cameron & Miller
2015, J. Human Resources 50, 317–372).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.statistics.distributions import stdtrit

Floats = NDArray[np.float64]
Range = tuple[float, float]


def mean_interval(values: ArrayLike, *, level: float = 0.95) -> Range | None:
    """Student's t interval of the mean of independent values; None for fewer than two."""
    return _around(values, level, new=False)


def prediction_interval(values: ArrayLike, *, level: float = 0.95) -> Range | None:
    """Where one further value of the same population lies: mean ± t · sd · √(1 + 1/n); None for fewer than two."""
    return _around(values, level, new=True)


def _around(values: ArrayLike, level: float, *, new: bool) -> Range | None:
    data = np.asarray(values, np.float64)
    if len(data) < 2:
        return None
    reach = stdtrit(len(data) - 1, 0.5 + level / 2) * data.std(ddof=1) * np.sqrt(new + 1 / len(data))
    return float(data.mean() - reach), float(data.mean() + reach)


def crossing_of_lines(slopes: ArrayLike, intercepts: ArrayLike, *, level: float = 0.95) -> Range | None:
    """Fieller's interval of −(mean intercept)/(mean slope) over lines that were fitted one per condition, shape (n,).

    It says how far the crossing would move with other conditions on the *same* datasets, so it is no interval for new
    datasets. None for fewer than two lines, or where the mean slope does not differ from zero at this level.
    """
    b, a = np.asarray(slopes, np.float64), np.asarray(intercepts, np.float64)
    if len(b) < 2:
        return None
    n = len(b)
    scale = stdtrit(n - 1, 0.5 + level / 2) ** 2 / n
    cov = np.cov(b, a)
    # {x: (ā + b̄x)² ≤ t²·var(ā + b̄x)}, a quadratic in x.
    square = b.mean() ** 2 - scale * cov[0, 0]
    half = a.mean() * b.mean() - scale * cov[0, 1]
    free = a.mean() ** 2 - scale * cov[1, 1]
    if not square > 0:
        return None
    root = max(0.0, float(half**2 - square * free)) ** 0.5
    return float((-half - root) / square), float((-half + root) / square)
