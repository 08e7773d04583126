"""A judge model corrected by people's labels: difference of two systems, interval, fewest labels, labels missing, κ.

A model judged all N queries, people a random sample of n whole queries. The unit is the query, because NDCG is not
linear in single grades. The estimate is prediction-powered inference (Angelopoulos et al., Science 2023,
arXiv 2301.09633), power-tuned (Angelopoulos, Duchi & Zrnic 2023, arXiv 2311.01453), for a sample out of the judged
queries (the difference estimator of two-phase sampling; Särndal, Swensson & Wretman 1992, ch. 9).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.statistics import stdtrit

Floats = NDArray[np.float64]
# With fewer labelled queries the interval does not keep its level (simulated).
FEWEST = 10
# Half-widths, in points, for which the missing labels are stated.
TARGETS = (4.0, 2.0)
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Corrected:
    """The difference of two systems over ``n_queries``, corrected by ``n_labelled`` of them.

    ``mean`` ± ``half`` is the 95% interval, ``weight`` the share λ of the judge's differences that the estimate uses.
    All in the unit of the input.
    """

    n_queries: int
    n_labelled: int
    mean: float
    half: float
    weight: float
    sd_people: float
    sd_residual: float

    @property
    def interval(self) -> tuple[float, float]:
        return self.mean - self.half, self.mean + self.half

    def more_labels(self, half: float) -> int:
        """Return how many more labelled queries make the interval ±``half``, by the spread seen so far.

        Beyond ``n_queries`` further queries are counted as labelled and judged both.
        """
        if self.half <= half:
            return 0
        return bisect_left(range(self.n_labelled, 10**9), True, key=lambda n: self._half_at(n) <= half)

    def _half_at(self, n_labelled: int) -> float:
        return float(_half(n_labelled, max(n_labelled, self.n_queries), self.sd_people**2, self.sd_residual**2))


def correct(judged: Mapping[str, float], people: Mapping[str, float]) -> Corrected | None:
    """Return the corrected mean of per-query differences; None below ``FEWEST`` labelled queries.

    ``judged`` {query: difference by the judge's grades} for all queries, ``people`` {query: the same by people's
    labels} for a random sample of them. Queries of ``people`` that the judge did not see are ignored.
    """
    labelled = [query for query in people if query in judged]
    if len(labelled) < FEWEST:
        return None
    model = np.array(list(judged.values()), np.float64)
    h = np.array([people[query] for query in labelled], np.float64)
    m = np.array([judged[query] for query in labelled], np.float64)
    mean, half, weight, sd_people, sd_residual = (float(value) for value in estimate(model, h, m))
    return Corrected(len(model), len(h), mean, half, weight, sd_people, sd_residual)


def estimate(model: Floats, people: Floats, paired: Floats) -> tuple[Any, Any, Any, Any, Any]:
    """Return (mean, half of the 95% interval, λ, SD of people's values, SD of the residuals) over the last axis.

    ``model`` (…, N) holds the judge's value of every query, ``people`` (…, n) and ``paired`` (…, n) people's and the
    judge's of the sample. e = h − λ (m − mean of all m); the estimate is mean(e), with the variance
    S²(h) / N + (1/n − 1/N) S²(e). Where people's values are all the same, the judge's spread stands for both: a
    sample without differences does not show that there are none.
    """
    n, total = people.shape[-1], model.shape[-1]
    weights = _leave_one_out_weights(people, paired)
    residual = people - weights * (paired - model.mean(-1, keepdims=True))
    same = np.ptp(people, axis=-1) == 0
    spread = model.var(-1, ddof=1)
    variances = [np.where(same, spread, values.var(-1, ddof=1)) for values in (people, residual)]
    half = _half(n, total, *variances)
    return residual.mean(-1), half, weights.mean(-1), np.sqrt(variances[0]), np.sqrt(variances[1])


def _leave_one_out_weights(people: Floats, paired: Floats) -> Floats:
    """Return for each labelled query λ = cov(h, m) / var(m) of all *other* labelled queries."""
    # Cross-fitting: a λ fitted to the query that it corrects biases the estimate and shrinks its residuals.
    h, m = (values - values.mean(-1, keepdims=True) for values in (people, paired))
    # Leaving out i changes the centred sums by n/(n−1) of its product.
    scale = people.shape[-1] / (people.shape[-1] - 1)
    covariance = (h * m).sum(-1, keepdims=True) - scale * h * m
    variance = (m * m).sum(-1, keepdims=True) - scale * m * m
    useful = variance > 1e-12
    return np.where(useful, covariance / np.where(useful, variance, 1.0), 0.0)


def _half(n: int, total: int, variance_people: Any, variance_residual: Any) -> Any:
    error = np.sqrt(variance_people / total + (1 / n - 1 / total) * variance_residual)
    return stdtrit(n - 1, 0.5 + LEVEL / 2) * error


def kappa(first: Sequence[int], second: Sequence[int], *, weighted: bool = False, grades: int = 4) -> float | None:
    """Return Cohen's κ of two judges' grades of the same pairs (Cohen 1960); None where chance agrees perfectly.

    ``weighted``: disagreement counts by the squared distance of the grades (Cohen 1968).
    """
    if not len(first):
        return None
    observed = np.zeros((grades, grades))
    np.add.at(observed, (np.asarray(first), np.asarray(second)), 1 / len(first))
    distance = np.subtract.outer(np.arange(grades), np.arange(grades))
    cost = distance**2.0 if weighted else (distance != 0).astype(np.float64)
    expected = np.outer(observed.sum(1), observed.sum(0))
    by_chance = float((cost * expected).sum())
    return 1 - float((cost * observed).sum()) / by_chance if by_chance else None


@dataclass(frozen=True)
class Agreement:
    """How two of those who decided agree on the items that both graded; ``weighted`` is the quadratically weighted
    κ."""

    first: str
    second: str
    pairs: int
    same: float
    kappa: float | None
    weighted: float | None


def agreements(graded: Mapping[str, Mapping[Any, int]], grades: int) -> tuple[Agreement, ...]:
    """Return the agreement of each two of {who: {item: grade from 0}}, where both graded an item."""
    found = []
    for (first, of_first), (second, of_second) in combinations(graded.items(), 2):
        if both := [item for item in of_first if item in of_second]:
            a, b = [of_first[item] for item in both], [of_second[item] for item in both]
            same = sum(x == y for x, y in zip(a, b, strict=True)) / len(both)
            k = [kappa(a, b, grades=grades, weighted=weighted) for weighted in (False, True)]
            found.append(Agreement(first, second, len(both), same, *k))
    return tuple(found)
