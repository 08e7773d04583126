"""Simultaneous intervals hold together as often as they say, with queries, seeds and what seeds share."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.principle.simultaneous import simultaneous

TRUE = np.array([40.0, 42.0, 45.0, 45.0, 47.0, 44.0])
FIXED = 2


def simulated(random: np.random.Generator, shared: float, own: float, n: int, seeds: int) -> list[NDArray[np.float64]]:
    """Two fixed options and four trainings on queries drawn from a population. A seed moves all trainings alike
    (``shared``), each by itself (``own``), and each query besides."""
    queries, of_seed = random.normal(0, 25, n), random.normal(0, shared, (seeds, 1))
    options = []
    for number, mean in enumerate(TRUE):
        scores = mean + queries + random.normal(0, 12, n)
        if number < FIXED:
            options.append(scores[None, :])
        else:
            noise = of_seed + random.normal(0, own, (seeds, 1)) + random.normal(0, 8, (seeds, n))
            options.append(scores + noise)
    return options


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "own", "n", "seeds"), [(0.0, 0.5, 300, 3), (1.5, 0.5, 100, 3), (0.5, 1.5, 300, 2)])
def test_all_intervals_hold_together(shared: float, own: float, n: int, seeds: int) -> None:
    random = np.random.default_rng(1)
    held = []
    for _ in range(200):
        d = simultaneous(simulated(random, shared, own, n, seeds), draws=1000)
        held.append(bool((np.abs(d.points - (TRUE[:, None] - TRUE[None, :])) <= d.reach + 1e-9).all()))
    # 95% of 200, with three standard errors below; wider is allowed where interaction counts twice.
    assert 0.9 <= np.mean(held) <= 0.995


def test_each_difference_is_as_wide_as_its_own_variance() -> None:
    """Noise between the seeds of the trainings widens their differences and not that of two fixed options."""
    quiet = simultaneous(simulated(np.random.default_rng(2), 0.0, 0.01, 400, 3))
    noisy = simultaneous(simulated(np.random.default_rng(2), 0.0, 2.0, 400, 3))
    assert noisy.reach[2, 3] > 1.5 * quiet.reach[2, 3]
    assert noisy.estimates.seed_variance[0, 1] == 0
    assert noisy.reach[0, 1] == pytest.approx(quiet.reach[0, 1], rel=0.1)


def test_a_single_option_and_different_queries() -> None:
    assert simultaneous([np.ones((1, 5))]).reach.shape == (1, 1)
    with pytest.raises(InputError, match="same"):
        simultaneous([np.ones((1, 5)), np.ones((1, 4))])
