"""How many times the queries or seeds settle an answer in 80% of tests: power over bootstrap draws of the pilot.

The rule is applied to bootstrap draws: true means are drawn about those of the study, then the means of a larger study
about these, with every option that could win among them.
"""

from __future__ import annotations

import numpy as np

from cdp.principle.simultaneous import MAX_WRONG, Estimates, differences

POWER = 0.8

# So many times the queries or the seeds; beyond, to have more is no advice. Coarse, so the advice errs upwards.
STEPS = (1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)

DRAWS = 1_000


def needed(estimates: Estimates, within: float, draws: int = DRAWS) -> tuple[str, float] | None:
    """Return ("queries" or "seeds", how many times as many) settle an answer with ``POWER``; None where neither does.

    Settled is that an option is shown to lie at most ``within`` below the best. The smaller remedy comes first.
    """
    found = [("queries", _smallest(estimates, "queries", within, draws))]
    if estimates.free:
        found.append(("seeds", _smallest(estimates, "seeds", within, draws)))

    settling = [(way, factor) for way, factor in found if factor]
    return min(settling, key=lambda item: item[1], default=None)


def _smallest(estimates: Estimates, way: str, within: float, draws: int) -> float:
    """The smallest of ``STEPS`` that settles it; 0 where none does."""
    low, high = 0, len(STEPS)
    while low < high:
        middle = (low + high) // 2
        grown = estimates.grown(**{way: STEPS[middle]})
        if power(estimates, grown, within, draws) >= POWER:
            high = middle
        else:
            low = middle + 1
    return STEPS[low] if low < len(STEPS) else 0.0


def power(pilot: Estimates, grown: Estimates, within: float, draws: int = DRAWS) -> float:
    """The share of studies as ``grown`` that settle what the ``pilot`` leaves open."""
    random = np.random.default_rng(0)
    means = pilot.means + pilot.errors(random, draws) + grown.errors(random, draws)
    d = differences(grown, draws)
    reach = d.above * d.error
    np.fill_diagonal(reach, -np.inf)
    bounds = means[:, :, None] - means[:, None, :] + reach

    behind = bounds.max(axis=1)
    near = behind.min(axis=1) <= within
    chances = grown.chances(means[near], behind[near].argmin(axis=1), within)
    return float((chances.max(axis=1) <= MAX_WRONG).sum() / draws)
