"""How the gain from diverse queries goes with content words: correlations, positive rates, the threshold.

All of it is computed from differences of NDCG@10 (``differences()``, or a study's own), never looked up. Every answer
says how many datasets stand behind it: conditions on the same dataset are not independent of each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from cdp.errors import InputError
from cdp.principle.differences import Difference, differences

BOOTSTRAP_SAMPLES = 2000
EXACT_UP_TO = 8
"""With so few datasets Spearman's p is counted over all orders; the usual approximation would give p = 0 for four."""

Floats = NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r and Spearman's ρ between CW and the difference, over the datasets of one condition; p two-sided.

    ``rho_p`` is exact for up to 8 datasets: the share of all orders with a ρ at least as far from zero.

    ``interval`` is Pearson's 95% bootstrap interval over the datasets, from resamples with at least three different
    ones, and ``without_one`` the range of r when each dataset in turn is left out. Both are None with three datasets:
    two points always lie on a line.
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

    ``by_condition`` and ``by_dataset`` are 95% bootstrap intervals of the crossing over conditions and over datasets
    (the wider and the more honest one: new tasks are new datasets), ``without_one_dataset`` its range when each dataset
    in turn is left out. ``r`` and ``rho`` are over all points; ``r_of_dataset_means`` and ``p_of_dataset_means`` are
    what remains when each dataset counts once.
    """

    slope: float
    intercept: float
    r: float
    crossing: float
    n_points: int
    n_datasets: int
    n_conditions: int
    by_condition: Range
    by_dataset: Range
    without_one_dataset: Range
    rho: float
    r_of_dataset_means: float
    p_of_dataset_means: float


@dataclass(frozen=True, slots=True)
class Line:
    """The least-squares line through the dataset means at some CW, with its 95% confidence band; all of shape (n,)."""

    cw: Floats
    points: Floats
    low: Floats
    high: Floats
    n_datasets: int


def correlation_table(data: Sequence[Difference] | None = None, *, seed: int = 0) -> list[Correlation]:
    """One row per retriever, comparison and Q/Doc. Conditions with fewer than 3 datasets are left out, and so are
    those whose CW or differences are all equal: there is nothing to correlate."""
    from scipy.stats import pearsonr, spearmanr

    table = []
    for (retriever, comparison, per_doc), points in by_condition(data).items():
        cw = np.array([d.cw for d in points])
        gain = np.array([d.points for d in points])
        if len(points) < 3 or np.ptp(cw) == 0 or np.ptp(gain) == 0:
            continue
        r, p = pearsonr(cw, gain)
        rho, rho_p = spearmanr(cw, gain)
        if len(points) <= EXACT_UP_TO:
            rho_p = _exact_p(cw, gain)
        n = len(points)
        interval = left = None
        if n > 3:
            chosen = _resamples(n, seed, distinct=3)
            interval = _range(np.nanquantile(_pearson(cw[chosen], gain[chosen]), [0.025, 0.975]))
            others = np.array([[j for j in range(n) if j != i] for i in range(n)])
            rest = _pearson(cw[others], gain[others])
            left = _range([np.nanmin(rest), np.nanmax(rest)])
        table.append(
            Correlation(
                retriever, comparison, per_doc, n, float(r), float(p), float(rho), float(rho_p), interval, left
            )
        )  # fmt: skip
    return table


def positive_rates(data: Sequence[Difference] | None = None) -> list[PositiveRate]:
    """Per dataset, in how many conditions the difference is above 0; the datasets with the most CW first."""
    by_dataset: dict[tuple[str, float], list[float]] = defaultdict(list)
    for d in differences() if data is None else data:
        by_dataset[d.dataset, d.cw].append(d.points)
    rates = [
        PositiveRate(name, cw, sum(p > 0 for p in points), len(points)) for (name, cw), points in by_dataset.items()
    ]
    return sorted(rates, key=lambda rate: -rate.cw)


def threshold(data: Sequence[Difference] | None = None, *, seed: int = 0) -> Threshold:
    """Least-squares line through all points, with what its zero crossing is worth.

    Raises InputError where ``why_no_threshold`` has an answer.
    """
    from scipy.stats import pearsonr, spearmanr

    points = list(differences() if data is None else data)
    problem = why_no_threshold(points)
    if problem:
        raise InputError(problem, hint="Evaluate on further benchmarks.")
    cw = np.array([d.cw for d in points])
    gain = np.array([d.points for d in points])
    names = sorted({d.dataset for d in points})
    datasets = [[d for d in points if d.dataset == name] for name in names]
    conditions = list(by_condition(points).values())
    slope, intercept = np.polyfit(cw, gain, 1)
    sums = _sums(datasets)
    left_out = _crossings(sums.sum(axis=0) - sums)
    dataset_cw, dataset_gain = dataset_means(points)
    flat = np.ptp(dataset_gain) == 0
    r_means, p_means = (0.0, 1.0) if flat else pearsonr(dataset_cw, dataset_gain)
    return Threshold(
        slope=float(slope),
        intercept=float(intercept),
        r=float(pearsonr(cw, gain)[0]),
        crossing=float(-intercept / slope),
        n_points=len(points),
        n_datasets=len(names),
        n_conditions=len(conditions),
        by_condition=_bootstrap(_sums(conditions), seed, distinct=1),
        by_dataset=_bootstrap(sums, seed, distinct=min(3, len(names) - 1)),
        without_one_dataset=_range([np.nanmin(left_out), np.nanmax(left_out)]),
        rho=float(spearmanr(cw, gain)[0]),
        r_of_dataset_means=float(r_means),
        p_of_dataset_means=float(p_means),
    )


def why_no_threshold(data: Sequence[Difference]) -> str:
    """Why no line can be drawn through these differences, in a sentence; empty where one can."""
    by_name = {d.dataset: d.cw for d in data}
    if len(by_name) < 3 or len(set(by_name.values())) < 2:
        n = len(by_name)
        same = " of the same CW" if n > 1 and len(set(by_name.values())) == 1 else ""
        return f"A threshold needs at least three datasets with different CW; there are {n}{same}."
    if np.ptp([d.points for d in data]) == 0:
        return "All differences are equal, so they do not depend on CW and there is no threshold."
    return ""


def line(data: Sequence[Difference], at: Sequence[float] | Floats) -> Line:
    """The line through the dataset means at each CW of ``at``, with the 95% confidence band of a mean gain.

    Its width comes from as many observations as there are datasets. InputError for fewer than three of them.
    """
    from scipy.stats import t

    problem = why_no_threshold(data)
    cw, gain = dataset_means(data)
    if problem and not (len(cw) > 2 and np.ptp(cw) > 0):
        raise InputError(problem, hint="Evaluate on further benchmarks.")
    x = np.asarray(at, dtype=np.float64)
    n = len(cw)
    slope, intercept = np.polyfit(cw, gain, 1)
    residual = gain - (slope * cw + intercept)
    spread = np.sqrt((residual**2).sum() / (n - 2))
    half = t.ppf(0.975, n - 2) * spread * np.sqrt(1 / n + (x - cw.mean()) ** 2 / ((cw - cw.mean()) ** 2).sum())
    value = slope * x + intercept
    return Line(x, value, value - half, value + half, n)


def dataset_means(data: Sequence[Difference]) -> tuple[Floats, Floats]:
    """CW and mean difference per dataset, each of shape (n_datasets,): the independent observations there are."""
    by_dataset: dict[str, list[Difference]] = defaultdict(list)
    for d in data:
        by_dataset[d.dataset].append(d)
    cw = np.array([points[0].cw for points in by_dataset.values()])
    gain = np.array([np.mean([d.points for d in points]) for points in by_dataset.values()])
    return cw, gain


def by_condition(data: Sequence[Difference] | None) -> dict[tuple[str, str, int], list[Difference]]:
    """The differences of each (retriever, comparison, Q/Doc)."""
    grouped: dict[tuple[str, str, int], list[Difference]] = defaultdict(list)
    for d in differences() if data is None else data:
        grouped[d.retriever, d.comparison, d.per_doc].append(d)
    return dict(grouped)


def _exact_p(x: Floats, y: Floats) -> float:
    """Spearman's two-sided p by permutation: the share of all orders of y whose |ρ| is at least as large."""
    from scipy.stats import rankdata

    ranks, others = rankdata(x), rankdata(y)
    orders = np.array(list(permutations(others)))
    found = np.abs(_pearson(np.broadcast_to(ranks, orders.shape), orders))
    return float((found >= abs(found[0]) - 1e-9).mean())


def _pearson(x: Floats, y: Floats) -> Floats:
    """r of each row of two arrays (samples, n); nan where a row has no variance."""
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    scale = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    found = np.divide((x * y).sum(axis=1), scale, out=np.full(len(x), np.nan), where=scale > 1e-12)
    return np.clip(found, -1.0, 1.0)


def _sums(groups: Sequence[Sequence[Difference]]) -> Floats:
    """What a line needs to know of each group of points: n, Σx, Σy, Σx², Σxy; shape (groups, 5)."""
    return np.array(
        [
            [len(g), sum(d.cw for d in g), sum(d.points for d in g), sum(d.cw**2 for d in g),
             sum(d.cw * d.points for d in g)]
            for g in groups
        ]
    )  # fmt: skip


def _crossings(sums: Floats) -> Floats:
    """Where the least-squares line through each row's points is zero; nan where there is no such line."""
    n, x, y, xx, xy = sums.T
    spread = n * xx - x * x
    slope = np.divide(n * xy - x * y, spread, out=np.full(len(n), np.nan), where=spread > 1e-9 * np.maximum(n * xx, 1))
    intercept = (y - slope * x) / n
    return np.divide(-intercept, slope, out=np.full(len(n), np.nan), where=np.abs(slope) > 1e-12)


def _bootstrap(sums: Floats, seed: int, *, distinct: int) -> Range:
    """95% interval of the crossing when whole groups are drawn anew; nan where no resample has a line."""
    crossings = _crossings(sums[_resamples(len(sums), seed, distinct=distinct)].sum(axis=1))
    if np.isnan(crossings).all():
        return float("nan"), float("nan")
    return _range(np.nanquantile(crossings, [0.025, 0.975]))


def _resamples(n: int, seed: int, *, distinct: int) -> NDArray[np.int64]:
    """Draws of n out of n with replacement, (samples, n), without those of fewer different members than ``distinct``:
    a line through two points has no error and says nothing."""
    drawn = np.random.default_rng(seed).integers(n, size=(BOOTSTRAP_SAMPLES, n))
    ordered = np.sort(drawn, axis=1)
    members = 1 + (np.diff(ordered, axis=1) > 0).sum(axis=1)
    return drawn[members >= distinct]


def _range(values: Sequence[float] | Floats) -> Range:
    return float(values[0]), float(values[1])
