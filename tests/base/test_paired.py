"""Tests of differences: their values against SciPy, their error rate on simulated data, and their edges."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from cdp.base.errors import InputError
from cdp.base.statistics import holm, paired_test
from tests.strategies import examples


@pytest.mark.slow
def test_the_t_test_is_scipys() -> None:
    random = np.random.default_rng(0)
    for n in (2, 5, 50, 3000):
        deltas = random.normal(0.02, 0.3, n)
        assert paired_test(deltas).p_t == pytest.approx(scipy.stats.ttest_1samp(deltas, 0.0).pvalue, rel=1e-9)


def test_false_positives_come_at_the_stated_rate() -> None:
    """400 simulated comparisons without a true difference, skewed and full of ties as real scores are."""
    random = np.random.default_rng(4)
    grades = np.array([0.0, 0.0, 0.0, 0.387, 0.5, 0.631, 1.0, 1.0])
    rejected, runs = 0, 400
    for _ in range(runs):
        deltas = random.choice(grades, 80) - random.choice(grades, 80)
        p = paired_test(deltas).p_t
        assert p is not None
        rejected += p < 0.05
    # Three standard errors of a rate of 5% over 400 runs are 3.3 points.
    assert abs(rejected / runs - 0.05) < 0.033, rejected / runs


def test_holm_keeps_the_error_of_a_family() -> None:
    """Ten datasets without a true difference: at most about 5% of comparisons may call any of them significant."""
    random = np.random.default_rng(5)
    p_values = random.random((4000, 10))
    any_corrected = np.mean([min(holm(row.tolist())) < 0.05 for row in p_values])
    any_raw = np.mean((p_values < 0.05).any(axis=1))
    assert any_raw > 0.35
    assert any_corrected < 0.06


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
    assert holm([0.2]) == [0.2]


@pytest.mark.slow
@examples(30, 1_000)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_only_raises_and_keeps_the_order(p_values: list[float]) -> None:
    found = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, found, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.asarray(found)[order]) >= 0).all()


def test_the_interval_holds_the_mean_and_shrinks_with_queries() -> None:
    random = np.random.default_rng(6)
    few, many = paired_test(random.normal(0.1, 0.4, 30)), paired_test(random.normal(0.1, 0.4, 3000))
    assert few.low < few.mean < few.high
    assert many.high - many.low < 0.2 * (few.high - few.low)


def test_nothing_differs() -> None:
    found = paired_test(np.zeros(7))
    assert (found.mean, found.p_t, found.ties) == (0.0, 1.0, 7)


def test_every_query_differs_by_the_same() -> None:
    found = paired_test(np.full(5, 0.1))
    assert (found.p_t, found.wins) == (0.0, 5)


def test_a_single_query_says_little() -> None:
    found = paired_test([0.4])
    assert found.p_t is None


@pytest.mark.parametrize("values", [[], [float("nan")], [[0.1]]])
def test_what_cannot_be_tested_is_refused(values: list) -> None:
    with pytest.raises(InputError):
        paired_test(values)
