"""CW as a weight (Eq. 2), and a set of CW values in numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdp.base.errors import InputError
from cdp.base.statistics import bootstrap_interval
from cdp.complexity import cw_interval, cw_weights, profile


def test_weights_follow_equation_2() -> None:
    weights = cw_weights(np.array([2, 6, 400]), kappa=100.0)
    np.testing.assert_allclose(weights, np.array([2, 6, 100]) / 108 * 3)
    assert weights.dtype == np.float64


def test_a_batch_without_content_words_gets_equal_weights() -> None:
    assert cw_weights([0, 0, 0]).tolist() == [1.0, 1.0, 1.0]
    assert cw_weights([]).shape == (0,)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 500), min_size=1, max_size=50), st.floats(0.5, 1000))
def test_weights_have_mean_1(cw: list[int], kappa: float) -> None:
    weights = cw_weights(cw, kappa)
    assert weights.mean() == pytest.approx(1.0)
    assert (weights >= 0).all()


@pytest.mark.parametrize(("cw", "kappa"), [([-1], 100), ([float("nan")], 100), ([[1]], 100), ([1], 0), ([1], -5)])
def test_unusable_weights_are_refused(cw: object, kappa: float) -> None:
    with pytest.raises(InputError):
        cw_weights(cw, kappa)  # type: ignore[arg-type]


def test_profile() -> None:
    result = profile([3, 6, 7, 8, 10, 11, 20, 7])
    assert (result.n, result.mean, result.median) == (8, 9.0, 7.5)
    assert (result.lower_quartile, result.upper_quartile) == (6.75, 10.25)
    assert result.sd == pytest.approx(np.std([3, 6, 7, 8, 10, 11, 20, 7], ddof=1))
    assert (result.minimum, result.maximum) == (3, 20)
    assert (result.below, result.between, result.above) == (0.25, 0.5, 0.25)
    assert len(result.histogram) == 21
    assert result.histogram[7] == 2
    assert result.interval[0] < 9.0 < result.interval[1]


def test_profile_of_one_query_and_of_none() -> None:
    one = profile([5])
    assert (one.mean, one.sd, one.interval) == (5.0, 0.0, (5.0, 5.0))
    with pytest.raises(InputError, match="no queries"):
        profile([])


def test_the_interval_is_seeded() -> None:
    rng = np.random.default_rng(3)
    cw = rng.poisson(8, size=200)
    assert cw_interval(cw, seed=1) == cw_interval(cw, seed=1)
    assert cw_interval(cw, seed=1) != cw_interval(cw, seed=2)


@pytest.mark.parametrize("values", ["few levels", "many levels", "very many values"])
def test_each_way_of_resampling_gives_the_interval_of_the_mean(values: str) -> None:
    """All three agree with mean ± 1.96 standard errors, which they must for a sample of this size."""
    rng = np.random.default_rng(0)
    data = {
        "few levels": lambda: rng.integers(0, 20, 3000).astype(float),
        "many levels": lambda: rng.normal(5, 2, 3000),
        "very many values": lambda: rng.normal(5, 2, 30_000),
    }[values]()
    low, high = bootstrap_interval(data)
    reach = 1.96 * data.std() / np.sqrt(len(data))
    assert low == pytest.approx(data.mean() - reach, abs=0.15 * reach)
    assert high == pytest.approx(data.mean() + reach, abs=0.15 * reach)
