"""Gains of one study or several in one regression over benchmarks: clusters, slopes over CW.

An observation is the gain of a condition on a benchmark, weighted by how well it is known (Hedges, Tipton & Johnson
2010, Res. Synth. Methods 1, 39–65). Errors are robust for two crossed kinds of clusters: benchmarks of one family,
which share documents and queries, and all that was trained on one corpus. What seeds do to all datasets at once is
added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.base.statistics import Coefficient, cluster_regression

Floats = NDArray[np.float64]

MEAN = "mean gain"

# Facts of a benchmark's queries that may explain a gain.
COVARIATES = {"cw": "content words", "words": "words of a query", "overlap": "words shared with the relevant documents"}


@dataclass(frozen=True, slots=True)
class Observation:
    """The gain of a condition on a benchmark (points) with its variance. ``by_seed`` the gains of the single seeds,
    ``covariates`` numbers by name; ``family`` is what was judged, ``corpus`` what was trained on: observations of one
    family, and of one corpus, hang together."""

    study: str
    family: str
    benchmark: str
    points: float
    variance: float
    by_seed: tuple[float, ...]
    covariates: Mapping[str, float]
    corpus: str = ""


@dataclass(frozen=True, slots=True)
class Pooled:
    """A regression. ``terms`` are its coefficients, the mean gain (at the mean of the covariates) among them.

    ``n`` observations in ``n_families`` judged families; ``between`` is the standard deviation between datasets beyond
    chance. ``problem`` says why there is no regression."""

    title: str
    terms: tuple[Coefficient, ...] = ()
    n: int = 0
    n_datasets: int = 0
    n_families: int = 0
    between: float | None = None
    problem: str = ""

    def term(self, name: str) -> Coefficient | None:
        return next((term for term in self.terms if term.name == name), None)


def over_datasets(title: str, observations: Sequence[Observation], names: Sequence[str] = ()) -> Pooled:
    """The mean gain, and its slopes on the covariates ``names``. A covariate that is not known for an observation takes
    the observation out."""
    known = [o for o in observations if all(np.isfinite(o.covariates.get(name, np.nan)) for name in names)]
    families = [o.family for o in known]
    shape: dict[str, Any] = {
        "n": len(known),
        "n_datasets": len({o.benchmark for o in known}),
        "n_families": len(set(families)),
    }
    if not known:
        return Pooled(title, problem="there is no observation.")
    y = np.array([o.points for o in known])
    columns: dict[str, Floats] = {}
    for name in names:
        values = np.array([o.covariates[name] for o in known])
        if np.ptp(values) > 1e-9:
            columns[name] = values
    between = _between(y, np.array([o.variance for o in known]), families, columns)
    in_family = {name: families.count(name) for name in set(families)}
    mean_variance = {name: np.mean([o.variance for o in known if o.family == name]) for name in in_family}
    weights = np.array([1 / (in_family[f] * (mean_variance[f] + between**2)) for f in families])
    centred = {name: values - np.average(values, weights=weights) for name, values in columns.items()}
    try:
        terms = cluster_regression(
            y, {MEAN: np.ones(len(y)), **centred}, families, weights,
            extra={MEAN: _of_seeds(known, weights)}, crossed=[o.corpus for o in known],
        )  # fmt: skip
    except InputError as error:
        return Pooled(title, problem=error.message, **shape)
    return Pooled(title, tuple(terms), between=between, **shape)


def _between(y: Floats, variances: Floats, families: Sequence[str], columns: Mapping[str, Floats]) -> float:
    """The standard deviation between datasets beyond chance: by the moments of the residuals."""
    x = np.column_stack([np.ones(len(y)), *columns.values()])
    if len(set(families)) <= x.shape[1]:
        return 0.0
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    excess = float(residual @ residual) / max(1, len(y) - x.shape[1]) - float(variances.mean())
    return max(0.0, excess) ** 0.5


def _of_seeds(known: Sequence[Observation], weights: Floats) -> tuple[float, float]:
    """(variance of the mean gain by what a seed does to all datasets at once, its degrees of freedom).

    Conditions of a study share their seeds: the mean over them is taken per seed. It errs on the wide side, for what
    seeds do to single datasets is in it too.
    """
    by_study: dict[str, list[tuple[Observation, float]]] = defaultdict(list)
    for o, weight in zip(known, weights, strict=True):
        by_study[o.study].append((o, float(weight)))
    total, variance, degrees = float(weights.sum()), 0.0, 0.0
    for members in by_study.values():
        seeds = min(len(o.by_seed) for o, _ in members)
        if seeds < 2:
            continue
        share = sum(weight for _, weight in members) / total
        means = np.average([o.by_seed[:seeds] for o, _ in members], axis=0, weights=[w for _, w in members])
        part = share**2 * float(means.var(ddof=1)) / seeds
        variance += part
        degrees += part**2 / (seeds - 1)
    return (variance, variance**2 / degrees) if degrees > 0 else (0.0, 1.0)
