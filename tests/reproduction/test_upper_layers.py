"""Two trained layers against all: the slope without the seeds' noise, and differences of opposite signs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reproduction import upper_layers
from reproduction.upper_layers import Difference, beyond, slope

ARMS = 60
ARMS_OF = (("diverse", 5), ("diverse", 1))
QUERIES = 50


def drawn(share: float, seeds: int) -> list[Difference]:
    """Differences of which two layers find ``share`` of what all find, each training with a luck of its own."""
    rng = np.random.default_rng(3)

    def arm(true: float, of_queries: np.ndarray) -> np.ndarray:
        return true + of_queries + rng.normal(0, 3, (seeds, 1)) + rng.normal(0, 2, (seeds, QUERIES))

    found = []
    for _ in range(ARMS):
        true, queries = rng.normal(0, 3), rng.normal(0, 1, QUERIES)
        found.append(Difference("all", ARMS_OF, arm(share * true, queries), arm(true, queries)))
    return found


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_luck_of_trainings_does_not_draw_the_slope_towards_zero(share: float) -> None:
    found = drawn(share, seeds=2)
    x, y = (np.array([getattr(d, name).mean() for d in found]) for name in ("whole", "two"))
    # The variance of a mean over two seeds is half of the truth's, so a plain line finds two thirds.
    assert np.polyfit(x, y, 1)[0] < 0.85 * share
    point, low, high = slope(found)
    assert point == pytest.approx(share, abs=0.2)
    assert low < point < high


def test_one_seed_says_nothing_of_its_luck() -> None:
    assert all(map(math.isnan, slope(drawn(1.0, seeds=1))))


def test_signs_are_those_of_significant_differences() -> None:
    rng = np.random.default_rng(0)
    up, none = rng.normal(5, 1, (2, QUERIES)), rng.normal(0, 20, (2, QUERIES))
    assert Difference("demo", ARMS_OF, up, -up).significant == (1, -1)
    assert Difference("demo", ARMS_OF, up, none - none.mean()).significant == (1, 0)


@pytest.mark.slow
def test_the_intervals_of_all_gaps_cover_them_together_with_the_luck_of_queries_and_trainings() -> None:
    """Four collections, three differences each, two seeds, on the scale that was seen: SD 25 points over queries, 0.7
    over trainings."""
    rng = np.random.default_rng(11)
    worlds, covered = 200, 0
    for _ in range(worlds):
        found, true = [], []
        for number in range(12):
            gap = rng.normal(0, 3)
            of_queries = rng.normal(gap, 25, QUERIES)
            two = rng.normal(0, 0.7, (2, 1)) + rng.normal(0, 10, (2, QUERIES))
            whole = of_queries + rng.normal(0, 0.7, (2, 1)) + rng.normal(0, 10, (2, QUERIES))
            found.append(Difference(str(number), ARMS_OF, two, whole))
            true.append(gap)

        covered += all(low <= gap <= high for gap, (_, low, high) in zip(true, beyond(found), strict=True))

    assert covered / worlds > 0.93


@pytest.mark.slow
def test_the_bootstrap_of_the_slope_is_too_narrow_to_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """It draws queries, but the noise that they leave in what the line is fitted on stays there."""
    monkeypatch.setattr(upper_layers, "DRAWS", 200)
    rng = np.random.default_rng(5)
    worlds, held = 40, 0
    for _ in range(worlds):
        found = []
        for collection in range(4):
            effects, queries = rng.normal(0, 2.5, (3, 1, 1)), rng.normal(0, 18, (3, 1, 100))
            whole = effects + queries + rng.normal(0, 0.7, (3, 2, 1)) + rng.normal(0, 8, (3, 2, 100))
            two = effects + 0.6 * queries + rng.normal(0, 0.7, (3, 2, 1)) + rng.normal(0, 8, (3, 2, 100))
            for a, b in ((1, 0), (2, 0), (2, 1)):
                found.append(Difference(str(collection), ARMS_OF, two[a] - two[b], whole[a] - whole[b]))

        _, low, high = slope(found)
        held += low <= 1 <= high

    assert held / worlds < 0.9
