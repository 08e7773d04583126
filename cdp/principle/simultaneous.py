"""Differences between all options of one study at once, how far each may lie below the best, and what would settle it.

Queries and seeds are crossed sources of variance (Cameron, Gelbach & Miller 2011, J. Bus. Econ. Stat. 29, 238–249): all
trainings are scored on the same queries, and one seed draws documents and order for all of them. Queries come in
clusters, which are the units. Where a model judged, people's labels correct the means of all options by one λ
(prediction-powered inference, Angelopoulos et al. 2023, arXiv 2301.09633). The intervals are Beran's balanced
simultaneous ones (1988, JASA 83, 679–686), their quantiles from a parametric bootstrap of the studentised differences;
the bounds against the best are those of Hsu (1984, Ann. Stat. 12, 1136–1144), one-sided. A confidence level says how
often all answers are wrong, not how often those are that stand; for these the options' means have a common normal
distribution (Lindley & Smith 1972, J. R. Stat. Soc. B 34, 1–41). tests/principle/worlds.py simulates all of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.base.statistics import Floats, cluster_influence, cluster_numbers, correction_rate, stdtr, stdtrit

DRAWS = 10_000
LEVEL = 0.95

# An answer stands where each other option has at most this chance of being better by more than the margin.
MAX_WRONG = 0.01

# Standard deviations between the options' true means, in points: before a study each is as likely.
SPREADS = (1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True)
class Estimates:
    """The means of A options and what they vary by: ``means`` (A,), ``covariance`` (A, A) over clusters of queries with
    ``degrees`` of freedom, ``seeds`` (A,) trainings of each; ``shared`` is the variance of a seed's effect on all
    trainings, ``own`` of its effect on one, ``free`` a seed's degrees of freedom. ``least`` (A, A) bounds the variance
    of a difference over queries from below."""

    means: Floats
    covariance: Floats
    degrees: float
    seeds: NDArray[np.int64]
    shared: float
    own: float
    free: int
    least: Floats

    @property
    def several(self) -> NDArray[np.bool_]:
        return self.seeds > 1

    @property
    def _of_seed(self) -> Floats:
        return np.where(self.several, 1 / self.seeds, 0.0)

    @cached_property
    def query_variance(self) -> Floats:
        """The variance (A, A) of each difference over queries."""
        spread = np.diag(self.covariance)
        return np.maximum(spread[:, None] + spread - 2 * self.covariance, self.least)

    @cached_property
    def seed_variance(self) -> Floats:
        """The variance (A, A) of each difference over seeds."""
        both, alone = self._weights()
        return self.own * both + self.shared * alone

    def _weights(self) -> tuple[Floats, Floats]:
        both = self._of_seed[:, None] + self._of_seed
        np.fill_diagonal(both, 0.0)
        # What a seed does to all trainings cancels between two of them.
        return both, np.where(self.several[:, None] != self.several, both, 0.0)

    @property
    def error(self) -> Floats:
        """The standard error (A, A) of each difference."""
        return np.sqrt(self.query_variance + self.seed_variance)

    def errors(self, random: np.random.Generator, draws: int) -> Floats:
        """Errors of the means (draws, A), with variances as these estimates leave them possible.

        Few seeds lengthen the tails (the fiducial argument of Behrens and Fisher; conservative).
        """
        count, k = len(self.means), int(self.several.sum())
        values, vectors = np.linalg.eigh(self.covariance)
        errors = random.standard_normal((draws, count)) @ (vectors * np.sqrt(np.maximum(values, 0))).T
        errors *= np.sqrt(self.degrees / random.chisquare(self.degrees, (draws, 1)))

        if self.free:
            between = (self.own + k * self.shared) * self.free / random.chisquare(self.free, (draws, 1))
            own = between
            if k > 1:
                degrees = (k - 1) * self.free
                own = self.own * degrees / random.chisquare(degrees, (draws, 1))
            shared = np.maximum(between - own, 0) / k
            errors += np.where(self.several, random.standard_normal((draws, 1)), 0) * np.sqrt(shared * self._of_seed)
            errors += random.standard_normal((draws, count)) * np.sqrt(own * self._of_seed)

        return errors

    def chances(self, means: Floats, of: NDArray[np.int64], within: float) -> Floats:
        """Return for each row of ``means`` (n, A) the posterior probability of each option to be more than ``within``
        above the one ``of`` (n,) says, of shape (n, A).

        The true means are normal about an unknown one, their spread one of ``SPREADS``. So a lead that noise may have
        made is shrunk, the more the noisier it is: the winner's curse (Storey 2003, Ann. Stat. 31, 2013–2035: the share
        of false ones among what is claimed is a posterior probability; Gelman, Hill & Yajima 2012, J. Res. Educ. Eff.
        5, 189–211).
        """
        count = len(self.means)
        contrasts = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, 1:]]))[0][:, 1:].T
        # −½ H v Hᵀ is the covariance of the contrasts H by the variances v of all differences.
        noise, vectors = np.linalg.eigh(-0.5 * contrasts @ self.error**2 @ contrasts.T)
        noise, axes = np.maximum(noise, 0.0), vectors.T @ contrasts
        seen = means @ axes.T

        total = np.square(SPREADS)[:, None] + noise
        likelihood = -0.5 * (seen[:, None] ** 2 / total + np.log(total)).sum(axis=2)
        weights = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)

        apart = (axes[:, :, None] - axes[:, None]) ** 2
        chances = np.zeros(means.shape)
        for weight, kept in zip(weights.T, 1 - noise / total, strict=True):
            shrunk = (seen * kept) @ axes
            lead = shrunk - np.take_along_axis(shrunk, of[:, None], axis=1) - within
            error = np.sqrt(np.tensordot(kept * noise, apart, 1))[of]
            chances += weight[:, None] * stdtr(self.degrees, lead / np.maximum(error, 1e-9))
        return chances

    def grown(self, queries: float = 1.0, seeds: float = 1.0) -> Estimates:
        """What as good a study would know that has so many times the queries or the seeds."""
        more = np.where(self.several, np.ceil(self.seeds * seeds).astype(np.int64), self.seeds)
        free = int(more[self.several].min()) - 1 if self.free else 0
        return replace(
            self,
            covariance=self.covariance / queries,
            least=self.least / queries,
            degrees=(self.degrees + 1) * queries - 1,
            seeds=more,
            free=free,
        )


@dataclass(frozen=True)
class Differences:
    """All pairwise differences of A options, each array of shape (A, A): row minus column, in the scores' unit.

    ``factor`` is how many standard errors ``error`` an interval reaches, ``statistics`` (A, A, draws) are errors of the
    differences in standard errors.
    """

    points: Floats
    error: Floats
    factor: Floats
    estimates: Estimates
    statistics: Floats = field(repr=False)

    @property
    def reach(self) -> Floats:
        return self.factor * self.error

    @cached_property
    def above(self) -> Floats:
        """How many standard errors the row may be above the column if the row is the best."""
        above = np.zeros_like(self.points)
        for best in range(len(above)):
            others = np.arange(len(above)) != best
            bound = _balanced(self.statistics[others, best])
            above[best, others] = np.maximum(bound, stdtrit(self.estimates.degrees, LEVEL))
        return above

    @property
    def bounds(self) -> Floats:
        """Upper bounds: the largest of a column is how far its option may lie below the best, for all options at once
        (95%)."""
        bounds = self.points + self.above * self.error
        np.fill_diagonal(bounds, -np.inf)
        return bounds


def simultaneous(
    scores: Sequence[Floats],
    *,
    clusters: Sequence[int] = (),
    people: Sequence[Floats] = (),
    draws: int = DRAWS,
) -> Differences:
    """Compare options by their scores, each of shape (its seeds, n_queries); a fixed option has one row.

    ``clusters`` (n_queries,) number the units, empty where each query is one. ``people`` are the same scores by
    people's grades, NaN where a query has none, empty where the scores are people's themselves. With one seed for all,
    the intervals know nothing of the training noise. InputError for fewer than two queries, or options that were scored
    on different numbers of queries.
    """
    if len({option.shape[1] for option in scores}) != 1 or scores[0].shape[1] < 2:
        raise InputError("Options are compared on the same two or more queries.")
    return differences(estimate(scores, clusters, people), draws)


def differences(estimates: Estimates, draws: int = DRAWS) -> Differences:
    """The simultaneous intervals and bounds of ``estimates``."""
    count = len(estimates.means)
    errors, error = estimates.errors(np.random.default_rng(0), draws), estimates.error
    # Draws stand last, side by side in memory: they are sorted and compared as a whole.
    columns = np.ascontiguousarray(errors.T)
    statistics = (columns[:, None] - columns) / np.where(error > 0, error, 1.0)[:, :, None]
    first, second = np.triu_indices(count, 1)
    factor = np.zeros((count, count))
    # No interval of many is shorter than that of one alone.
    floor = _balanced(np.abs(statistics[first, second]))
    floor = np.maximum(floor, stdtrit(estimates.degrees, 0.5 + LEVEL / 2))
    factor[first, second] = factor[second, first] = floor

    return Differences(
        points=estimates.means[:, None] - estimates.means,
        error=error,
        factor=factor,
        estimates=estimates,
        statistics=statistics,
    )


def estimate(scores: Sequence[Floats], clusters: Sequence[int] = (), people: Sequence[Floats] = ()) -> Estimates:
    """The means of options with their variances; arguments as of ``simultaneous``."""
    n = scores[0].shape[1]
    groups = cluster_numbers(clusters, n)
    judged = _per_query(scores)
    by_seed = list(scores)
    influence, least = cluster_influence(judged, groups), np.zeros((len(scores), len(scores)))
    units = groups

    if len(people):
        graded = _per_query(people)
        labelled = np.isfinite(graded).all(axis=0)
        units, graded = groups[labelled], graded[:, labelled]
        rate = correction_rate(graded, judged[:, labelled], units)
        # θ = h̄ − λ (m̄ of the labelled − m̄ of all): one λ for all options, so that their differences add up.
        by_seed = [
            h[:, labelled] - rate * (m[:, labelled] - m.mean(axis=1, keepdims=True))
            for h, m in zip(people, scores, strict=True)
        ]
        residual = _per_query(by_seed)
        same = np.ptp(graded[:, None] - graded, axis=2) == 0
        influence = rate.mean() * influence
        influence[np.unique(units)] += cluster_influence(residual, units)
        # A sample without differences does not show that there are none: the judge's spread stands for people's.
        spread = np.var(judged[:, None] - judged, axis=2, ddof=1) / labelled.sum()
        least = np.where(same, spread, 0.0)

    shared, own, free = _seed_variances([option.mean(axis=1) for option in by_seed if len(option) > 1])
    return Estimates(
        means=np.array([option.mean() for option in by_seed]),
        covariance=influence.T @ influence,
        degrees=float(len(np.unique(units)) - 1),
        seeds=np.array([len(option) for option in by_seed]),
        shared=shared,
        own=own,
        free=free,
        least=least,
    )


def _per_query(options: Sequence[Floats]) -> Floats:
    """Each option's scores (n_queries,), the mean over its seeds; (A, n_queries)."""
    return np.array([option.mean(axis=0) for option in options])


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
    """For each row of (k, draws) the bound that all keep together at ``LEVEL``, each as often as the others."""
    count, draws = statistics.shape
    if not count:
        return np.zeros(0)
    ordered, wanted = np.sort(statistics), LEVEL * draws

    def kept(rank: int) -> bool:
        return bool(np.count_nonzero((statistics <= ordered[:, rank, None]).all(axis=0)) >= wanted)

    return np.asarray(ordered[:, bisect_left(range(draws), True, key=kept)])


# How many times the queries or seeds settle an answer in 80% of tests: the rule is applied to bootstrap draws. True
# means are drawn about those of the study, then the means of a larger study about these, with every option that could
# win among them.

POWER = 0.8

# So many times the queries or the seeds; beyond, to have more is no advice. Coarse, so the advice errs upwards.
STEPS = (1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)

POWER_DRAWS = 1_000


def needed(estimates: Estimates, within: float, draws: int = POWER_DRAWS) -> tuple[str, float] | None:
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


def power(pilot: Estimates, grown: Estimates, within: float, draws: int = POWER_DRAWS) -> float:
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
