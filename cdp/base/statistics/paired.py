"""Which differences between two retrievers mean something: tests over the same queries, their correction, intervals.

Two tests of "the mean difference is zero", both paired over queries: Student's t, and the randomisation test, which
flips the sign of each query's difference at random and asks how often the mean comes out as far from zero. The second
(Fisher 1935; for retrieval Smucker et al. 2007) assumes nothing about the distribution; its p-value counts the observed
outcome among the drawn ones, (1 + as extreme) / (1 + drawn), so it is never 0. Several datasets in one comparison are
corrected together with Holm's procedure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError
from cdp.base.statistics.distributions import stdtr, stdtrit
from cdp.base.statistics.resampling import bootstrap_interval

DRAWS = 10_000
"""Sign patterns drawn by a randomisation test: p-values come in steps of 1/10,001."""

_SIGNS = 2.0 * ((np.arange(256)[:, None] >> np.arange(8)) & 1) - 1
"""The eight signs that each value of a byte stands for: (256, 8)."""


@dataclass(frozen=True)
class PairedTest:
    """The difference of two retrievers on one dataset, in the unit of the scores.

    ``low`` and ``high`` bound the mean difference (95% bootstrap over queries). ``effect`` is Cohen's d for pairs: the
    mean difference over the standard deviation of the differences, None where all are equal but not zero. ``p_t`` and
    ``p_random`` are two-sided; ``p_t`` is None for a single query.
    """

    n: int
    mean: float
    low: float
    high: float
    effect: float | None
    p_t: float | None
    p_random: float
    wins: int
    losses: int
    ties: int


def paired_test(differences: ArrayLike, *, draws: int = DRAWS, seed: int = 0) -> PairedTest:
    """Test the differences of one dataset, shape (n,). InputError for none, or values that are not finite."""
    deltas = np.asarray(differences, np.float64)
    if deltas.ndim != 1 or not len(deltas):
        raise InputError("There is no query to compare on.")
    if not np.isfinite(deltas).all():
        raise InputError("A difference is not a finite number.")
    low, high = bootstrap_interval(deltas, seed=seed)
    return PairedTest(
        n=len(deltas),
        mean=float(deltas.mean()),
        low=low,
        high=high,
        effect=effect_size(deltas),
        p_t=t_test(deltas),
        p_random=randomisation_test(deltas, draws=draws, seed=seed),
        wins=int((deltas > 0).sum()),
        losses=int((deltas < 0).sum()),
        ties=int((deltas == 0).sum()),
    )


def effect_size(deltas: NDArray[np.float64]) -> float | None:
    """Cohen's d for pairs, mean over standard deviation (n - 1); 0 where nothing differs, None where every query
    differs by the same."""
    spread = float(deltas.std(ddof=1)) if len(deltas) > 1 else 0.0
    if spread > 1e-12 * float(np.abs(deltas).max()):
        return float(deltas.mean()) / spread
    return 0.0 if not deltas.any() else None


def t_test(deltas: NDArray[np.float64]) -> float | None:
    """Two-sided p of the paired t-test; 1 where nothing differs, None where a single query cannot tell."""
    if len(deltas) < 2:
        return None
    if not deltas.any():
        return 1.0
    effect = effect_size(deltas)
    if effect is None:
        return 0.0
    statistic = effect * len(deltas) ** 0.5
    return float(2 * stdtr(len(deltas) - 1, -abs(statistic)))


def mean_interval(n: int, mean: float, spread: float) -> tuple[float | None, float | None, float | None]:
    """(low, high, p) of a mean difference over ``n`` queries with this standard deviation (n - 1): the 95% interval and
    the two-sided p of Student's t. None for a single query; where every query differs by the same, that is the
    interval."""
    if n < 2:
        return None, None, None
    if spread <= 1e-12 * abs(mean) or not spread:
        return mean, mean, 1.0 if not mean else 0.0
    error = spread / n**0.5
    half = float(stdtrit(n - 1, 0.975)) * error
    return mean - half, mean + half, float(2 * stdtr(n - 1, -abs(mean) / error))


def randomisation_test(deltas: NDArray[np.float64], *, draws: int = DRAWS, seed: int = 0) -> float:
    """Two-sided p of the paired randomisation test, at least 1/(draws + 1).

    Queries without a difference do not matter to it. With up to 13 others all sign patterns are enumerated when there
    are no more of them than draws, and the p-value is exact.
    """
    moved = np.abs(deltas[deltas != 0])
    observed = abs(float(deltas.sum()))
    # Sums of the same numbers in another order may differ in their last digits and must count as equal.
    bar = observed - 1e-9 * float(moved.sum())
    if not len(moved):
        return 1.0
    if 2 ** len(moved) <= draws:
        patterns = (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1
        return float((np.abs((2 * patterns - 1) @ moved) >= bar).mean())
    # Eight signs are one drawn byte, and what each of its 256 values adds to the sum is worked out beforehand.
    random = np.random.default_rng(seed)
    padded = np.concatenate([moved, np.zeros(-len(moved) % 8)]).reshape(-1, 8)
    sums = np.zeros(draws)
    for added in padded @ _SIGNS.T:
        sums += added[random.integers(0, 256, draws, dtype=np.uint8)]
    extreme = int((np.abs(sums) >= bar).sum())
    return (1 + extreme) / (1 + draws)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for being several (Holm 1979, Scand. J. Statist. 6, 65–70), in the given order: each at most
    1, order kept.

    The chance that any true null hypothesis gets a corrected p below α is at most α, whatever their dependence.
    """
    corrected = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = running
    return corrected


def seed_spread(means: Sequence[float]) -> tuple[float, float]:
    """(mean, standard deviation with n - 1) of one result over training seeds. InputError for fewer than two."""
    if len(means) < 2:
        raise InputError("One seed has no spread.", hint="Train with at least two seeds.")
    values = np.asarray(means, np.float64)
    return float(values.mean()), float(values.std(ddof=1))
