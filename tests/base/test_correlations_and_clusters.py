"""Fisher's interval, the crossing over conditions, prediction of a further value: against SciPy and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from cdp.base.statistics import (
    leave_one_out,
    pearson,
    ranks,
    spearman,
)
from tests.base.simulation import coverage


@pytest.mark.slow
def test_pearson_and_fisher_are_scipys() -> None:
    random = np.random.default_rng(0)
    for n in (4, 7, 31):
        x = random.normal(size=n)
        y = x + random.normal(size=n)
        ours, theirs = pearson(x, y), scipy.stats.pearsonr(x, y)
        assert ours is not None
        assert (ours.r, ours.p) == pytest.approx(tuple(theirs))
        assert ours.interval == pytest.approx(tuple(theirs.confidence_interval()))
    three = pearson([1, 2, 3], [1, 3, 2])
    assert three is not None
    assert three.interval is None
    assert pearson([1, 2, 3], [5, 5, 5]) is None
    assert pearson([1, 2], [5, 6]) is None


@pytest.mark.slow
def test_spearman_is_scipys_with_ties_too() -> None:
    random = np.random.default_rng(1)
    for n, kinds in ((5, 9), (12, 3), (40, 6)):
        x, y = random.integers(kinds, size=(2, n))
        ours, theirs = spearman(x, y), scipy.stats.spearmanr(x, y)
        assert list(ranks(x)) == list(scipy.stats.rankdata(x))
        assert ours is not None
        assert (ours.r, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue))


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_fishers_interval_covers_at_four_datasets(rho: float) -> None:
    def draw(random: np.random.Generator) -> tuple[tuple[float, float] | None, float]:
        x = random.normal(size=4)
        found = pearson(x, rho * x + (1 - rho**2) ** 0.5 * random.normal(size=4))
        return (None if found is None else found.interval), rho

    assert 0.935 <= coverage(draw, runs=700).share <= 0.97


@pytest.mark.slow
def test_r_without_each() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 9.0]), np.array([2.0, 1.0, 3.0, 9.0])
    each = [scipy.stats.pearsonr(np.delete(x, i), np.delete(y, i))[0] for i in range(4)]
    assert leave_one_out(x, y) == pytest.approx((min(each), max(each)))
    assert leave_one_out(x[:3], y[:3]) is None
