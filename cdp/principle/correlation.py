"""How the gain from diverse queries goes with content words (CW): r, positive rates, the threshold.

The paper's tab:content_words (r and p per condition) and tab:cw_threshold (positive rates, regression, threshold). All
of it is computed from differences of NDCG@10 (``differences()``, or a study's own), never looked up. Every answer
says how many datasets stand behind it: conditions on the same dataset are not independent of each other, so every
interval counts each dataset once (``cdp.base.statistics``; which one covers how well: docs/METHODS.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np

from cdp.base.condition import DIVERSE, Condition
from cdp.base.errors import NotFoundError
from cdp.base.statistics import Floats, LineFit, Range, fit_line, leave_one_out, pearson, ranks, spearman
from cdp.principle.tables import condition_of, read

# With so few datasets Spearman's p is counted over all orders; the usual approximation would give p = 0 for four.
EXACT_UP_TO = 8


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r and Spearman's ρ between CW and the difference, over the datasets of one condition; p two-sided.

    ``rho_p`` is exact for up to 8 datasets: the share of all orders with a ρ at least as far from zero.

    ``interval`` is Fisher's 95% interval of r, and ``without_one`` the range of r when each dataset in turn is left
    out. Both are None with three datasets: two points always lie on a line.
    """

    retriever: str
    comparison: str
    per_doc: int
    n_datasets: int
    r: float
    p: float
    rho: float
    rho_p: float
    interval: Range | None
    without_one: Range | None


@dataclass(frozen=True, slots=True)
class PositiveRate:
    """On how many of the conditions a dataset gained (difference above 0)."""

    dataset: str
    cw: float
    positive: int
    conditions: int

    @property
    def rate(self) -> float:
        return self.positive / self.conditions


@dataclass(frozen=True, slots=True)
class Threshold:
    """The regression of the difference on CW, and the CW at which it crosses zero.

    ``by_dataset`` is Fieller's 95% interval of the crossing with each dataset counted once: the one that holds for new
    datasets; None where it has no bounds, as the slope does not differ from zero. ``without_each`` is the crossing
    without each dataset by name (None where the rest has no line), ``without_one_dataset`` their range.
    ``slope_interval`` is the slope's 95% interval. ``r`` is over all points; ``r_of_dataset_means`` and
    ``p_of_dataset_means`` are what remains when each dataset counts once.
    """

    slope: float
    intercept: float
    r: float
    crossing: float
    n_points: int
    n_datasets: int
    by_dataset: Range | None
    without_one_dataset: Range
    without_each: dict[str, float | None]
    slope_interval: Range
    r_of_dataset_means: float
    p_of_dataset_means: float


def correlation_table(data: Sequence[Difference] | None = None) -> list[Correlation]:
    """One row per retriever, comparison and Q/Doc (tab:content_words). Conditions with fewer than 3 datasets are left
    out, and so are those whose CW or differences are all equal: there is nothing to correlate."""
    by_condition: dict[tuple[str, str, int], list[Difference]] = defaultdict(list)
    for d in _or_published(data):
        by_condition[d.retriever, d.comparison, d.per_doc].append(d)

    table = []
    for (retriever, comparison, per_doc), points in by_condition.items():
        cw, gain = _arrays(points)
        correlation, of_ranks = pearson(cw, gain), spearman(cw, gain)
        if correlation is None or of_ranks is None:
            continue

        table.append(
            Correlation(
                retriever,
                comparison,
                per_doc,
                n_datasets=correlation.n,
                r=correlation.r,
                p=correlation.p,
                rho=of_ranks.r,
                rho_p=_exact_p(cw, gain) if len(points) <= EXACT_UP_TO else of_ranks.p,
                interval=correlation.interval,
                without_one=leave_one_out(cw, gain),
            )
        )

    return table


def positive_rates(data: Sequence[Difference] | None = None) -> list[PositiveRate]:
    """Per dataset, in how many conditions the difference is above 0 (tab:cw_threshold); the datasets with the most CW
    first."""
    by_dataset: dict[tuple[str, float], list[bool]] = defaultdict(list)
    for d in _or_published(data):
        by_dataset[d.dataset, d.cw].append(d.points > 0)

    rates = [PositiveRate(name, cw, sum(positive), len(positive)) for (name, cw), positive in by_dataset.items()]
    return sorted(rates, key=lambda rate: -rate.cw)


def threshold(data: Sequence[Difference] | None = None) -> Threshold:
    """Least-squares line through all points (tab:cw_threshold), with what its zero crossing is worth.

    InputError for fewer than three datasets, or equal CW.
    """
    points = _or_published(data)
    all_points = fit_line(*_arrays(points))
    overall = pearson(*_arrays(points))
    fit = fit_of_means(points)
    means = pearson(*dataset_means(points))

    without: dict[str, float | None] = {}
    for name in sorted({d.dataset for d in points}):
        without[name] = _crossing([d for d in points if d.dataset != name])
    left_out = [value for value in without.values() if value is not None] or [all_points.crossing]

    return Threshold(
        slope=all_points.slope,
        intercept=all_points.intercept,
        r=overall.r if overall else 0.0,
        crossing=all_points.crossing,
        n_points=len(points),
        n_datasets=fit.n,
        by_dataset=fit.crossing_interval(),
        without_one_dataset=(min(left_out), max(left_out)),
        without_each=without,
        slope_interval=fit.slope_interval(),
        r_of_dataset_means=means.r if means else 0.0,
        p_of_dataset_means=means.p if means else 1.0,
    )


def _or_published(data: Sequence[Difference] | None) -> Sequence[Difference]:
    return differences() if data is None else data


def _arrays(points: Sequence[Difference]) -> tuple[Floats, Floats]:
    """CW and difference of each point, both of shape (n,)."""
    return np.array([d.cw for d in points]), np.array([d.points for d in points])


def fit_of_means(data: Sequence[Difference]) -> LineFit:
    """The line through the dataset means: the fit that every interval of this module comes from. InputError for fewer
    than three datasets, or equal CW."""
    return fit_line(*dataset_means(data))


def _crossing(points: Sequence[Difference]) -> float | None:
    """Where the line through these points is zero; None where two datasets of different CW are not there."""
    cw, gain = _arrays(points)
    if len(np.unique(cw)) < 2:
        return None
    slope, intercept = np.polyfit(cw, gain, 1)
    return float(-intercept / slope) if abs(slope) > 1e-12 else None


def dataset_means(data: Sequence[Difference]) -> tuple[Floats, Floats]:
    """CW and mean difference per dataset, each of shape (n_datasets,): the independent observations there are."""
    cw: dict[str, float] = {}
    gains: dict[str, list[float]] = defaultdict(list)
    for d in data:
        cw.setdefault(d.dataset, d.cw)
        gains[d.dataset].append(d.points)

    return np.array(list(cw.values())), np.array(list(map(np.mean, gains.values())))


def _exact_p(x: Floats, y: Floats) -> float:
    """Spearman's two-sided p by permutation: the share of all orders of y whose |ρ| is at least as large."""
    centred = ranks(x) - (len(x) + 1) / 2  # so ρ is the product of both ranks up to a constant
    products = np.abs(np.array(list(permutations(ranks(y)))) @ centred)
    return float((products >= products[0] - 1e-9).mean())


# The differences that the principle rests on: how much more NDCG@10 one way of training reached than its control.
#
# Published ones are taken from the two-decimal scores; a study's own have the same form, and the same functions of
# ``correlation`` read both.

PARAPHRASE = "diverse_minus_paraphrase"
SCALING = "qdoc_minus_one"
WEIGHTING = "cw_weighted_minus_equal"

COMPARISONS = {
    PARAPHRASE: "diverse minus paraphrase, at the same Q/Doc",
    SCALING: "diverse at this Q/Doc minus one query per document",
    WEIGHTING: "CW-weighted minus equal weights",
}

MULTI_HOP, ALL = "multi-hop", "all"
DATASET_CHOICES = {MULTI_HOP: "The four multi-hop datasets", ALL: "All 31 datasets with a CW"}


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more NDCG@10 (in points, 0 to 100) one condition reached than its control, on one dataset.

    ``per_doc`` is the condition's Q/Doc and ``cw`` the mean content words of the dataset's queries. For own results
    ``retriever`` names all else that tells the condition apart.
    """

    retriever: str
    comparison: str
    per_doc: int
    dataset: str
    cw: float
    points: float


@lru_cache(maxsize=8)
def differences(choice: str = MULTI_HOP) -> tuple[Difference, ...]:
    """The published differences: 14 conditions on the 4 multi-hop datasets, or Q/Doc scaling on all 31 with a CW.

    From tab:multihop_diversity and tab:multihop_scaling, or tab:scaling_full with the latter. The comparison with
    paraphrases was published for the multi-hop datasets only. NotFoundError for another ``choice``.
    """
    if choice not in DATASET_CHOICES:
        raise NotFoundError("choice of datasets", choice, known=list(DATASET_CHOICES))

    cw = {row["dataset"]: row["cw"] for row in read("datasets")}
    tables = ("tab:multihop_scaling", "tab:multihop_diversity" if choice == MULTI_HOP else "tab:scaling_full")
    scores: dict[tuple[str, Condition, str], float] = {}
    for row in read("results"):
        if row["table"] in tables and not row["is_average"]:
            scores[row["table"], condition_of(row), row["dataset"]] = row["value"]

    published = []
    for (table, diverse, dataset), value in scores.items():
        comparison, control = SCALING, diverse.single
        if table == "tab:multihop_diversity":
            comparison, control = PARAPHRASE, diverse.paraphrased

        if diverse.method == DIVERSE and control is not None:
            points = value - scores[table, control, dataset]
            place = (diverse.retriever, comparison, diverse.per_doc, dataset, cw[dataset])
            published.append(Difference(*place, points))

    return tuple(sorted(published, key=lambda d: (d.retriever, d.comparison, d.per_doc, d.cw)))
