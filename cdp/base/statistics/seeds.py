"""Differences between trainings: the variance over queries and the variance over seeds together.

A test over queries takes a model as given. What is claimed of a *recipe* also varies with the seed, and a few seeds say
little about by how much, which is why the degrees of freedom count as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.base.statistics.distributions import stdtr, stdtrit

Floats = NDArray[np.float64]

NO_SPREAD = 0.005
"""Percent. Means over seeds that are closer are the same when printed: repetitions of one training, not a spread."""


@dataclass(frozen=True, slots=True)
class SeedTest:
    """A difference between two recipes, in the unit of the scores: two-sided p and 95% interval.

    ``query_error`` and ``seed_error`` are the two standard errors of the mean difference, ``degrees`` Satterthwaite's
    degrees of freedom of their sum.
    """

    mean: float
    low: float
    high: float
    p: float
    degrees: float
    query_error: float
    seed_error: float


def two_level_test(first: Sequence[Floats], second: Sequence[Floats] = (), *, level: float = 0.95) -> SeedTest:
    """The mean difference of ``first`` and ``second``, each the scores (n_queries,) of its runs over seeds.

    Var = Var(per-query difference of the averages)/n + Σ over both sides Var(means over seeds)/k, with
    Satterthwaite's degrees of freedom (1946, Biometrics Bulletin 2, 110–114). A side with one run is taken as a fixed
    model; for differences that are paired by seed give these as ``first`` alone. What varies over seeds and queries
    together counts on both sides of the sum, so the test errs on the wide side. InputError without scores.
    """
    sides = [np.asarray(side, np.float64) for side in (first, second) if len(side)]
    if not sides or any(side.ndim != 2 for side in sides) or len({side.shape[1] for side in sides}) > 1:
        raise InputError("A difference over seeds needs the scores of the same queries for every run.")
    n = sides[0].shape[1]
    if n < 2:
        raise InputError("A single query has no variance.")
    per_query = sides[0].mean(axis=0) - (sides[1].mean(axis=0) if len(sides) > 1 else 0.0)
    parts = [(float(per_query.var(ddof=1)) / n, n - 1)]
    parts += [(float(side.mean(axis=1).var(ddof=1)) / len(side), len(side) - 1) for side in sides if len(side) > 1]
    mean, variance = float(per_query.mean()), sum(part for part, _ in parts)
    if variance <= 1e-24 * max(1.0, mean * mean):
        return SeedTest(mean, mean, mean, 1.0 if mean == 0 else 0.0, float(n - 1), 0.0, 0.0)
    degrees = variance**2 / sum(part**2 / free for part, free in parts)
    error = variance**0.5
    reach = float(stdtrit(degrees, 0.5 + level / 2)) * error
    return SeedTest(
        mean=mean,
        low=mean - reach,
        high=mean + reach,
        p=float(2 * stdtr(degrees, -abs(mean) / error)),
        degrees=degrees,
        query_error=parts[0][0] ** 0.5,
        seed_error=sum(part for part, _ in parts[1:]) ** 0.5,
    )


def has_spread(means: Sequence[float]) -> bool:
    """Whether several seeds (means in percent) gave results that differ at all."""
    return len(means) > 1 and float(np.std(means, ddof=1)) >= NO_SPREAD
