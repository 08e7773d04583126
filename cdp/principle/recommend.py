"""Avoid, test or recommend: what the content words of a task's queries say about diverse training queries.

The published rule: a mean CW below 7 avoids, 7 to 10 tests, above 10 recommends several different queries per document.
The interval and the caveats say how much that is worth for the queries at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cdp.errors import ConfigError, InputError
from cdp.principle.correlation import dataset_means
from cdp.principle.published import SCALING, Difference, differences

AVOID_BELOW = 7.0
RECOMMEND_ABOVE = 10.0
FEW_QUERIES = 50

ADVICE = {
    "avoid": "Several different queries per document are likely to hurt this task: write one good query per document.",
    "test": "This task may gain or lose: train with one and with several different queries per document, and compare.",
    "recommend": "This task is likely to gain from several different queries per document.",
    "in-domain": "The target queries resemble the training queries: one good query per document serves them best.",
}


@dataclass(frozen=True, slots=True)
class Expected:
    """The difference in NDCG@10 points that the published multi-hop results suggest at this CW.

    ``points`` lies on the least-squares line through the dataset means (both retrievers averaged); ``low`` and ``high``
    bound the line's value with 95% confidence, from as few observations as there are datasets.
    """

    comparison: str
    per_doc: int
    points: float
    low: float
    high: float
    n_datasets: int


@dataclass(frozen=True)
class Recommendation:
    """The answer for one set of target queries.

    ``level`` is avoid, test or recommend; ``possible`` are the levels that the interval of the mean CW touches, and
    ``certain`` is whether that is only one.
    """

    level: str
    advice: str
    mean_cw: float
    interval: tuple[float, float]
    n_queries: int
    possible: tuple[str, ...]
    shares: dict[str, float]
    expected: tuple[Expected, ...] = ()
    caveats: tuple[str, ...] = field(default_factory=tuple)

    @property
    def certain(self) -> bool:
        return len(self.possible) == 1


def level_of(cw: float) -> str:
    """The published rule for one mean CW."""
    return "avoid" if cw < AVOID_BELOW else "test" if cw <= RECOMMEND_ABOVE else "recommend"


def recommend(
    cw_values: ArrayLike, *, language: str = "en", domain: str = "ood", seed: int = 0, samples: int = 2000
) -> Recommendation:
    """What to do for queries with these content-word counts.

    ``cw_values``: shape (n_queries,), counts of at least 0. ``domain``: "ood" if the target queries differ from the
    training queries (other task, other style), "in-domain" if they do not. The interval is a 95% bootstrap interval
    of the mean. Raises InputError for no queries or values that are not counts, ConfigError for an unknown domain.
    """
    if domain not in ("ood", "in-domain"):
        raise ConfigError(f"The domain must be ood or in-domain, not {domain!r}.")
    cw = np.asarray(cw_values, dtype=np.float64).ravel()
    if cw.size == 0:
        raise InputError("There are no target queries.", hint="Paste or upload some, one per line.")
    if not np.isfinite(cw).all() or (cw < 0).any():
        raise InputError("Content words must be counts of at least 0.")
    mean = float(cw.mean())
    low, high = bootstrap_mean(cw, seed=seed, samples=samples)
    level = level_of(mean)
    names = ("avoid", "test", "recommend")
    first, last = names.index(level_of(low)), names.index(level_of(high))
    return Recommendation(
        level=level,
        advice=ADVICE["in-domain"] if domain == "in-domain" else ADVICE[level],
        mean_cw=mean,
        interval=(low, high),
        n_queries=int(cw.size),
        possible=names[first : last + 1],
        shares={
            "avoid": float((cw < AVOID_BELOW).mean()),
            "test": float(((cw >= AVOID_BELOW) & (cw <= RECOMMEND_ABOVE)).mean()),
            "recommend": float((cw > RECOMMEND_ABOVE).mean()),
        },
        expected=expected_differences(mean),
        caveats=tuple(_caveats(cw, mean, names[first : last + 1], language, domain)),
    )


def bootstrap_mean(cw: np.ndarray, *, seed: int = 0, samples: int = 2000) -> tuple[float, float]:
    """95% bootstrap interval of the mean; counts repeat, so whole histograms are drawn (exact and fast for any n)."""
    if cw.size == 1:
        return float(cw[0]), float(cw[0])
    values, counts = np.unique(cw, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(cw.size, counts / cw.size, size=samples)
    low, high = np.quantile(draws @ values / cw.size, [0.025, 0.975])
    return float(low), float(high)


def evidence_range() -> tuple[float, float]:
    """The smallest and the largest mean CW among the datasets of the published evidence."""
    cw = [d.cw for d in differences()]
    return min(cw), max(cw)


def expected_differences(mean_cw: float) -> tuple[Expected, ...]:
    """For each comparison and Q/Doc of the published results: the fitted difference at this CW, with its interval.

    Outside the range of CW that the evidence covers there is no estimate: the line is not extended.
    """
    low, high = evidence_range()
    if not low <= mean_cw <= high:
        return ()
    conditions = sorted({(d.comparison, d.per_doc) for d in differences()}, key=lambda c: (c[0] != SCALING, c[1]))
    return tuple(
        _expected(
            mean_cw,
            comparison,
            per_doc,
            [d for d in differences() if (d.comparison, d.per_doc) == (comparison, per_doc)],
        )
        for comparison, per_doc in conditions
    )


def _expected(at: float, comparison: str, per_doc: int, points: Sequence[Difference]) -> Expected:
    from scipy.stats import t

    cw, gain = dataset_means(points)
    n = len(cw)
    slope, intercept = np.polyfit(cw, gain, 1)
    residual = gain - (slope * cw + intercept)
    spread = np.sqrt((residual**2).sum() / (n - 2))
    half = t.ppf(0.975, n - 2) * spread * np.sqrt(1 / n + (at - cw.mean()) ** 2 / ((cw - cw.mean()) ** 2).sum())
    value = slope * at + intercept
    return Expected(comparison, per_doc, float(value), float(value - half), float(value + half), n)


def _caveats(cw: np.ndarray, mean: float, possible: tuple[str, ...], language: str, domain: str) -> list[str]:
    found = []
    if len(possible) > 1:
        found.append(
            f"The interval of the mean reaches into {' and '.join(possible)}: more target queries would narrow it."
        )
    if cw.size < FEW_QUERIES:
        found.append(
            f"Only {cw.size} target {'query' if cw.size == 1 else 'queries'}; {FEW_QUERIES} or more are wanted."
        )
    low, high = evidence_range()
    if not low <= mean <= high:
        found.append(
            f"The published evidence covers mean CW from {low:.2f} to {high:.2f}; {mean:.2f} lies outside it, so no "
            "difference is estimated."
        )
    if language != "en":
        found.append(
            "The lines at 7 and 10 were drawn from English queries; counts in other languages are not comparable with "
            "them, so treat this as a hint and test."
        )
    if domain == "in-domain":
        found.append("The rule is about queries unlike the training queries; in-domain, more diversity did not help.")
    found.append(
        "The evidence is 14 conditions on only four multi-hop datasets, with two retrievers and queries written by "
        "GPT-4o-mini; on queries of a weaker generator (Mistral-7B) the relation was reversed."
    )
    return found
