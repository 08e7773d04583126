"""Differences between all options of one study at once: every interval holds together with the others at 95%.

Queries and seeds are crossed sources of variance (Cameron, Gelbach & Miller 2011, J. Bus. Econ. Stat. 29, 238–249): all
trainings are scored on the same queries, and one seed draws documents and order for all of them. The intervals are
Beran's balanced simultaneous ones (1988, JASA 83, 679–686), their quantiles from a parametric bootstrap of the
studentised differences. tests/principle/test_simultaneous.py simulates the coverage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError

Floats = NDArray[np.float64]

DRAWS = 10_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Differences:
    """All pairwise differences of A options, each array of shape (A, A): row minus column, in the scores' unit.

    ``query_variance`` and ``seed_variance`` add up to the variance of a difference; ``factor`` is how many standard
    errors its interval reaches.
    """

    points: Floats
    query_variance: Floats
    seed_variance: Floats
    factor: Floats

    @property
    def reach(self) -> Floats:
        return self.factor * np.sqrt(self.query_variance + self.seed_variance)


def simultaneous(scores: Sequence[Floats], *, draws: int = DRAWS) -> Differences:
    """Compare options by their scores, each of shape (its seeds, n_queries); a fixed option has one row.

    With one seed for all, the intervals know nothing of the training noise. InputError for fewer than two queries, or
    options that were scored on different numbers of queries.
    """
    if len({option.shape[1] for option in scores}) != 1 or scores[0].shape[1] < 2:
        raise InputError("Options are compared on the same two or more queries.")
    count, n = len(scores), scores[0].shape[1]
    per_query = np.array([option.mean(axis=0) for option in scores])
    means = per_query.mean(axis=1)
    covariance = np.atleast_2d(np.cov(per_query)) / n
    seeds = np.array([len(option) for option in scores])
    several = seeds > 1
    of_seed = np.where(several, 1 / seeds, 0.0)
    shared, own, free = _seed_variances([option.mean(axis=1) for option in scores if len(option) > 1])
    first, second = np.triu_indices(count, 1)
    both = of_seed[first] + of_seed[second]
    # What a seed does to all trainings cancels between two of them.
    alone = np.where(several[first] != several[second], both, 0.0)
    spread = np.diag(covariance)
    query = np.maximum(spread[first] + spread[second] - 2 * covariance[first, second], 0.0)
    random = np.random.default_rng(0)
    values, vectors = np.linalg.eigh(covariance)
    noise = random.standard_normal((draws, count)) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    noise += np.where(several, random.standard_normal((draws, 1)) * np.sqrt(shared * of_seed.max(initial=0.0)), 0.0)
    noise += random.standard_normal((draws, count)) * np.sqrt(own * of_seed)
    # Each draw is studentised by variances as they would be estimated, with their degrees of freedom.
    estimated = (random.chisquare(n - 1, draws) / (n - 1))[:, None] * query
    if free:
        k = int(several.sum())
        between = (own + k * shared) * random.chisquare(free, draws) / free
        within = own * random.chisquare((k - 1) * free, draws) / ((k - 1) * free) if k > 1 else between
        estimated += within[:, None] * both + (np.maximum(between - within, 0) / k)[:, None] * alone
    apart = np.abs(noise[:, first] - noise[:, second])
    statistics = np.divide(apart, np.sqrt(estimated), out=np.zeros_like(apart), where=estimated > 0)

    def square(values: Floats) -> Floats:
        matrix = np.zeros((count, count))
        matrix[first, second] = matrix[second, first] = values
        return matrix

    return Differences(
        points=means[:, None] - means[None, :],
        query_variance=square(query),
        seed_variance=square(own * both + shared * alone),
        factor=square(_balanced(statistics)),
    )


def _seed_variances(means: Sequence[Floats]) -> tuple[float, float, int]:
    """(variance that all trainings of a seed share, each training's own, degrees of freedom of a seed).

    ``means`` hold the mean score of each seed, an array for each option. Two-way analysis of variance.
    """
    if not means:
        return 0.0, 0.0, 0
    fewest = min(map(len, means))
    table = np.array([row[:fewest] for row in means])
    k, free = len(table), fewest - 1
    centred = table - table.mean(axis=1, keepdims=True)
    of_seed = centred.mean(axis=0)
    between = k * float(np.sum(of_seed**2)) / free
    if k == 1:
        return 0.0, between, free
    within = float(np.sum((centred - of_seed) ** 2)) / ((k - 1) * free)
    return max(0.0, between - within) / k, within, free


def _balanced(statistics: Floats) -> Floats:
    """For each column of (draws, k) the bound that all keep together at ``LEVEL``, each as often as the others."""
    draws, columns = statistics.shape
    if not columns:
        return np.zeros(0)
    order = np.argsort(statistics, axis=0)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(draws)[:, None], axis=0)
    rank = np.sort(ranks.max(axis=1))[int(np.ceil(LEVEL * draws)) - 1]
    return np.asarray(statistics[order[rank], np.arange(columns)])
