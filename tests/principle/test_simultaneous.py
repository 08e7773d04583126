"""Simultaneous intervals hold together as often as they say, with queries, seeds and what seeds share."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.principle.simultaneous import SPREADS, simultaneous

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


@pytest.mark.slow
def test_the_chance_to_be_better_is_that_of_the_posterior() -> None:
    """By Gibbs sampling of means and spread; a lead is shrunk the more, the noisier it is."""
    random = np.random.default_rng(3)
    estimates = simultaneous(simulated(random, 0.5, 0.5, 60, 3)).estimates
    covariance = np.diag(np.where(estimates.several, estimates.own / estimates.seeds, 0.0)) + estimates.covariance
    precision, drawn, spread = np.linalg.inv(covariance), [], 4.0
    for _ in range(3_000):
        # The level has a flat prior: centred, so that it is drawn with the means.
        prior = (np.eye(6) - 1 / 6) / spread**2
        after = np.linalg.inv(precision + prior)
        true = random.multivariate_normal(after @ precision @ estimates.means, after)
        drawn.append(true[:, None] - true > 2.0)
        likelihood = [-5 * np.log(s) - ((true - true.mean()) ** 2).sum() / (2 * s * s) for s in SPREADS]
        weights = np.exp(np.array(likelihood) - max(likelihood))
        spread = random.choice(SPREADS, p=weights / weights.sum())
    chances = estimates.chances(np.tile(estimates.means, (6, 1)), np.arange(6), 2.0)
    assert pytest.approx(np.mean(drawn, axis=0), abs=0.05) == chances.T


def test_a_noisier_lead_is_shrunk_more() -> None:
    random = np.random.default_rng(4)
    chances = []
    for noise in (5.0, 30.0):
        d = simultaneous([40 + random.normal(0, noise, (1, 60)) + lead for lead in (0, 0, 0)])
        error = d.error[0, 1]
        # The same lead in standard errors of the difference.
        means = np.array([[0.0, 0.0, 3.0 * error - 2.0]])
        chances.append(d.estimates.chances(means, np.array([2]), 2.0)[0, 0])
    assert chances[0] < 0.004
    assert chances[1] > 2 * chances[0]


def test_a_single_option_and_different_queries() -> None:
    assert simultaneous([np.ones((1, 5))]).reach.shape == (1, 1)
    with pytest.raises(InputError, match="same"):
        simultaneous([np.ones((1, 5)), np.ones((1, 4))])
