"""The two-level test: equal to SciPy's where one level is empty, and right in its error rate where neither is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from cdp.base.errors import InputError
from cdp.base.statistics import paired_test, seed_spread, two_level_test


@pytest.mark.slow
def test_without_a_spread_over_seeds_it_is_the_paired_t_test() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(50, 20, 80), random.normal(48, 20, 80)
    alone = two_level_test([first], [second])
    assert alone.p == pytest.approx(scipy.stats.ttest_rel(first, second).pvalue)
    same = scipy.stats.ttest_rel(first, second).confidence_interval()
    assert (alone.low, alone.high) == pytest.approx((same.low, same.high))
    assert two_level_test([first - second]).p == pytest.approx(alone.p)


@pytest.mark.slow
def test_without_a_spread_over_queries_it_is_welchs_t_test_of_the_means() -> None:
    first, second = [52.0, 50.0, 54.0], [47.0, 48.0, 46.5, 47.2]
    found = two_level_test([np.full(30, v) for v in first], [np.full(30, v) for v in second])
    expected = scipy.stats.ttest_ind(first, second, equal_var=False)
    assert (found.p, found.degrees) == pytest.approx((expected.pvalue, expected.df))


def recipe(random: np.random.Generator, queries: np.ndarray, seeds: int) -> list[np.ndarray]:
    """Runs of one recipe on given queries: 1 point between seeds, 8 points per query and seed."""
    return [queries + random.normal(0, 1) + random.normal(0, 8, len(queries)) for _ in range(seeds)]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5])
def test_two_runs_of_one_recipe_seldom_differ(seeds: int) -> None:
    """Of pairs of the same recipe the test over queries alone calls far more than 5% different."""
    random = np.random.default_rng(1)
    runs, by_query, by_both = 200, 0, 0
    for _ in range(runs):
        queries = random.normal(50, 25, 300)
        first, second = recipe(random, queries, seeds), recipe(random, queries, seeds)
        single = paired_test(first[0] - second[0]).p_t
        assert single is not None
        by_query += single < 0.05
        by_both += two_level_test(first, second).p < 0.05
    assert by_query / runs > 0.3
    assert by_both / runs < 0.07


@pytest.mark.slow
def test_the_interval_of_paired_differences_covers_with_seeds_queries_and_both_as_sources() -> None:
    random = np.random.default_rng(2)
    runs, covered, sure = 400, 0, 0
    for _ in range(runs):
        queries, seeds = random.normal(0, 15, 200), random.normal(0, 1, 4)
        found = two_level_test([seed + queries + random.normal(0, 12, 200) for seed in seeds])
        covered += found.low <= 0 <= found.high
        over_queries = paired_test(np.mean([queries + seed for seed in seeds], axis=0)).p_t
        sure += over_queries is not None and over_queries < 0.05
    assert 0.93 <= covered / runs <= 0.975
    assert sure / runs > 0.05


def test_few_queries_no_scores_and_equal_seeds() -> None:
    with pytest.raises(InputError, match="same queries"):
        two_level_test([])
    with pytest.raises(InputError, match="single query"):
        two_level_test([np.ones(1)])
    assert two_level_test([np.zeros(5)]).p == 1.0
    assert seed_spread([41.2, 41.2, 41.2]) is None
    assert seed_spread([41.2]) is None
    assert seed_spread([41.2, 41.4]) == pytest.approx(0.2 / 2**0.5)
