"""A regression over few clusters: equal to least squares, and its intervals cover what they say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from cdp.base.errors import InputError
from cdp.base.statistics import cluster_regression

pytestmark = pytest.mark.slow

# Datasets of eight families, as MuSiQue's hops and the samples of HotpotQA come.
SIZES = (1, 1, 1, 2, 3, 1, 2, 1)


def test_the_estimate_is_that_of_weighted_least_squares() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=30), rng.uniform(0.5, 2, 30)
    y = 2 + 3 * x + rng.normal(size=30)
    found = cluster_regression(y, {"one": np.ones(30), "x": x}, [i % 10 for i in range(30)], w)
    design = np.column_stack([np.ones(30), x])
    expected = np.linalg.lstsq(design * np.sqrt(w)[:, None], y * np.sqrt(w), rcond=None)[0]
    assert [c.value for c in found] == pytest.approx(expected)


def test_of_single_observations_the_mean_has_students_interval() -> None:
    y = np.array([1.0, 2.5, -0.5, 3.0, 0.7])
    (mean,) = cluster_regression(y, {"one": np.ones(5)}, range(5))
    assert (mean.low, mean.high) == pytest.approx(scipy.stats.t.interval(0.95, 4, y.mean(), scipy.stats.sem(y)))
    assert mean.degrees == pytest.approx(4)


def simulated(rng: np.random.Generator, runs: int) -> np.ndarray:
    """(runs, 2): whether the intervals of the mean and of the slope hold the truth, 0.5 and 1, where families and seeds
    have effects of their own."""
    families = np.repeat(np.arange(len(SIZES)), SIZES)
    hits = np.zeros((runs, 2))
    for run in range(runs):
        cw = rng.uniform(4, 14, len(families))
        x = cw - cw.mean()
        seeds = rng.normal(0, 0.5, 5)
        scores = (
            0.5 + x + rng.normal(0, 1, len(SIZES))[families]
            + seeds[:, None] + rng.normal(0, 0.7, (5, len(families)))
        )  # fmt: skip
        shared = float(scores.mean(axis=1).var(ddof=1)) / 5
        found = cluster_regression(
            scores.mean(axis=0), {"one": np.ones(len(x)), "cw": x}, families.tolist(), extra={"one": (shared, 4)}
        )
        for number, truth in enumerate((0.5, 1.0)):
            hits[run, number] = found[number].low <= truth <= found[number].high
    return hits


def test_intervals_over_eight_families_cover_what_they_say() -> None:
    """Over 3,000 runs 95.0% and 97.6%; the plain sandwich with normal quantiles holds the truth in 78% and 83%."""
    mean, slope = simulated(np.random.default_rng(1), 300).mean(axis=0)
    assert 0.925 <= mean <= 0.985
    assert 0.935 <= slope <= 0.995


def test_what_all_clusters_share_widens_the_interval_of_the_coefficient_that_it_moves() -> None:
    y = np.array([1.0, 2.5, -0.5, 3.0, 0.7])
    (alone,) = cluster_regression(y, {"one": np.ones(5)}, range(5))
    (shared,) = cluster_regression(y, {"one": np.ones(5)}, range(5), extra={"one": (4.0, 2)})
    assert shared.value == alone.value
    assert shared.error == pytest.approx((alone.error**2 + 4) ** 0.5)


def test_too_few_clusters_and_dependent_columns_are_refused() -> None:
    with pytest.raises(InputError, match=r"^2 independent groups are too few for 2 coefficients"):
        cluster_regression(np.ones(4), {"one": np.ones(4), "x": np.arange(4)}, [0, 0, 1, 1])
    with pytest.raises(InputError, match=r"^1 independent group is too few for 1 coefficient\.$"):
        cluster_regression(np.ones(4), {"one": np.ones(4)}, [0, 0, 0, 0])
    with pytest.raises(InputError, match="No covariate varies"):
        cluster_regression(np.ones(4), {}, range(4))
    with pytest.raises(InputError, match="not independent"):
        cluster_regression(np.ones(4), {"one": np.ones(4), "x": np.ones(4)}, range(4))


def test_no_added_variance_shortens_an_interval() -> None:
    """Three families have few degrees of freedom; seeds with many must not lend them theirs."""
    random = np.random.default_rng(0)
    clusters = [f"f{i % 4}" for i in range(12)]
    y = random.normal(0, 1, 12) + np.repeat(random.normal(0, 1, 4)[None], 3, axis=0).ravel()
    columns = {"mean": np.ones(12)}
    (alone,) = cluster_regression(y, columns, clusters)
    for variance in (1e-4, 0.01, 0.1, 1.0):
        (more,) = cluster_regression(y, columns, clusters, extra={"mean": (variance, 50.0)})
        assert more.high - more.low >= alone.high - alone.low
