"""Lines through few points: against SciPy, against published numbers, and by simulation with a known truth."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from cdp.base.errors import InputError
from cdp.base.statistics import fit_line
from cdp.principle import dataset_means, differences
from tests.base.simulation import Coverage, coverage

# The design of the published evidence: four datasets at these CW.
CW = np.array([6.34, 8.6, 8.64, 11.64])

# About what the published means show; SD is the scatter between datasets.
SLOPE, CROSSING, SD = 2.85, 7.9, 1.34


def simulated(kind: str, n_conditions: int = 14) -> Coverage:
    """Coverage of one interval at the published design, with conditions that share their dataset's deviation."""

    def draw(random: np.random.Generator) -> tuple[tuple[float, float] | None, float]:
        dataset = random.normal(0, SD, len(CW))
        noise = random.normal(0, 1.0, (n_conditions, len(CW))).mean(axis=0)
        fit = fit_line(CW, SLOPE * (CW - CROSSING) + dataset + noise)
        if kind == "crossing":
            return fit.crossing_interval(), CROSSING
        if kind == "slope":
            return fit.slope_interval(), SLOPE
        x = float(random.uniform(6.34, 11.64))
        low, high = fit.mean_interval(x)
        return (float(low), float(high)), SLOPE * (x - CROSSING)

    return coverage(draw, runs=1500)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["crossing", "slope", "line"])
def test_intervals_cover_95_percent_at_the_published_design(kind: str) -> None:
    found = simulated(kind)
    assert 0.935 <= found.share <= 0.965, found


@pytest.mark.slow
def test_a_bootstrap_over_four_datasets_is_no_interval() -> None:
    """The reason for all of this: resampling four datasets covers far less than 95%."""

    def draw(random: np.random.Generator) -> tuple[tuple[float, float], float]:
        y = SLOPE * (CW - CROSSING) + random.normal(0, SD, len(CW))
        chosen = np.sort(random.integers(len(CW), size=(300, len(CW))), axis=1)
        chosen = chosen[(np.diff(chosen, axis=1) > 0).sum(axis=1) >= 2]  # a line through two points has no error
        x, gain = CW[chosen], y[chosen]
        dx = x - x.mean(axis=1, keepdims=True)
        crossings = x.mean(axis=1) - gain.mean(axis=1) * (dx**2).sum(axis=1) / (dx * gain).sum(axis=1)
        low, high = np.quantile(crossings, [0.025, 0.975])
        return (float(low), float(high)), CROSSING

    assert coverage(draw, runs=200).share < 0.75


@pytest.mark.slow
def test_the_fit_is_scipys() -> None:
    random = np.random.default_rng(2)
    x, y = random.normal(size=9), random.normal(size=9)
    ours, theirs = fit_line(x, y), scipy.stats.linregress(x, y)
    assert (ours.slope, ours.intercept, ours.p) == pytest.approx((theirs.slope, theirs.intercept, theirs.pvalue))
    assert ours.slope_error == pytest.approx(theirs.stderr)
    half = scipy.stats.t.ppf(0.975, 7) * theirs.stderr
    assert ours.slope_interval() == pytest.approx((theirs.slope - half, theirs.slope + half))


@pytest.mark.slow
def test_the_crossing_lies_where_the_band_of_the_line_touches_zero() -> None:
    """Fieller's interval found again without its formula: the x at which the line's own interval begins to hold 0."""
    fit = fit_line(*dataset_means(differences()))
    found = fit.crossing_interval()
    assert found == pytest.approx((6.17, 8.93), abs=0.005)
    grid = np.linspace(0, 20, 200_001)
    low, high = fit.mean_interval(grid)
    holds_zero = grid[(low <= 0) & (high >= 0)]
    assert found == pytest.approx((holds_zero.min(), holds_zero.max()), abs=2e-4)


def test_no_bounds_exactly_where_the_slope_is_not_significant() -> None:
    random = np.random.default_rng(5)
    for _ in range(200):
        fit = fit_line(CW, random.normal(size=4) + 0.5 * CW)
        assert (fit.crossing_interval() is None) == (fit.p >= 0.05)


def test_too_few_points_are_said() -> None:
    with pytest.raises(InputError, match="three points"):
        fit_line([1, 2], [3, 4])
    with pytest.raises(InputError, match="different x"):
        fit_line([1, 1, 1], [3, 4, 5])
    with pytest.raises(InputError, match="as many"):
        fit_line([1, 2, 3], [3, 4])
