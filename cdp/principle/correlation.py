"""How the gain from diverse queries goes with content words: correlations, positive rates, the threshold.

All of it is computed from differences of NDCG@10 (``published.differences()``, or a user's own), never looked up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdp.errors import InputError
from cdp.principle.published import Difference, differences

BOOTSTRAP_SAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r between CW and the difference over the datasets of one condition; p is two-sided."""

    retriever: str
    comparison: str
    per_doc: int
    n_datasets: int
    r: float
    p: float


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

    ``by_condition`` is the 95% bootstrap interval over conditions, ``without_one_dataset`` the range of the crossing
    when each dataset in turn is left out; ``p_of_dataset_means`` is what remains when each dataset counts once.
    """

    slope: float
    intercept: float
    r: float
    crossing: float
    n_points: int
    n_datasets: int
    by_condition: tuple[float, float]
    without_one_dataset: tuple[float, float]
    p_of_dataset_means: float


def correlation_table(data: Sequence[Difference] | None = None) -> list[Correlation]:
    """Pearson's r and p per retriever, comparison and Q/Doc. Conditions with fewer than 3 datasets are left out."""
    from scipy.stats import pearsonr

    table = []
    for (retriever, comparison, per_doc), points in _by_condition(data).items():
        cw = np.array([d.cw for d in points])
        gain = np.array([d.points for d in points])
        if len(points) < 3 or np.ptp(cw) == 0 or np.ptp(gain) == 0:
            continue
        r, p = pearsonr(cw, gain)
        table.append(Correlation(retriever, comparison, per_doc, len(points), float(r), float(p)))
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

    Raises InputError for fewer than three datasets or datasets that all have the same CW.
    """
    from scipy.stats import pearsonr

    points = list(differences() if data is None else data)
    names = sorted({d.dataset for d in points})
    cw = np.array([d.cw for d in points])
    gain = np.array([d.points for d in points])
    if len(names) < 3 or np.ptp(cw) == 0:
        raise InputError(
            f"A threshold needs at least three datasets with different CW; there are {len(names)}.",
            hint="Evaluate on further benchmarks.",
        )
    slope, intercept = np.polyfit(cw, gain, 1)
    conditions = list(_by_condition(points).values())
    rng = np.random.default_rng(seed)
    crossings = []
    for _ in range(BOOTSTRAP_SAMPLES):
        chosen = [d for i in rng.integers(len(conditions), size=len(conditions)) for d in conditions[i]]
        crossings.append(_crossing([d.cw for d in chosen], [d.points for d in chosen]))
    left_out = [
        _crossing([d.cw for d in points if d.dataset != name], [d.points for d in points if d.dataset != name])
        for name in names
    ]
    dataset_cw, dataset_gain = dataset_means(points)
    low, high = np.nanquantile(crossings, [0.025, 0.975])
    return Threshold(
        slope=float(slope),
        intercept=float(intercept),
        r=float(pearsonr(cw, gain)[0]),
        crossing=float(-intercept / slope),
        n_points=len(points),
        n_datasets=len(names),
        by_condition=(float(low), float(high)),
        without_one_dataset=(float(np.nanmin(left_out)), float(np.nanmax(left_out))),
        p_of_dataset_means=float(pearsonr(dataset_cw, dataset_gain)[1]),
    )


def dataset_means(data: Sequence[Difference]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """CW and mean difference per dataset, each of shape (n_datasets,): the independent observations there are."""
    by_dataset: dict[str, list[Difference]] = defaultdict(list)
    for d in data:
        by_dataset[d.dataset].append(d)
    cw = np.array([points[0].cw for points in by_dataset.values()])
    gain = np.array([np.mean([d.points for d in points]) for points in by_dataset.values()])
    return cw, gain


def _by_condition(data: Sequence[Difference] | None) -> dict[tuple[str, str, int], list[Difference]]:
    grouped: dict[tuple[str, str, int], list[Difference]] = defaultdict(list)
    for d in differences() if data is None else data:
        grouped[d.retriever, d.comparison, d.per_doc].append(d)
    return dict(grouped)


def _crossing(cw: Sequence[float], gain: Sequence[float]) -> float:
    """Where the least-squares line through the points is zero; nan where there is no such line."""
    if len(cw) < 2 or np.ptp(cw) == 0:
        return float("nan")
    slope, intercept = np.polyfit(cw, gain, 1)
    return float(-intercept / slope) if slope else float("nan")
