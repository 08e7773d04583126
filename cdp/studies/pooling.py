"""Gains of one study or several in one model: how large they are, and whether they grow with CW once other things are
held fixed.

Two levels. Over datasets, an observation is the gain of a condition on a benchmark, weighted by how well it is known
(Hedges, Tipton & Johnson 2010, Res. Synth. Methods 1, 39–65); over queries, it is the gain of a query against the mean
of its benchmark. In both, errors are robust for clusters: benchmarks of one family, and all that was measured on them,
are one cluster, for they share documents and queries. Over datasets, all that was trained on one corpus is one as well:
corpora and families are crossed. What seeds do to all datasets at once is added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.base.statistics import Coefficient, cluster_regression
from cdp.studies.gains import Gain

Floats = NDArray[np.float64]

MEAN = "mean gain"

# Of a benchmark, or of a query: what may explain a gain.
COVARIATES = {
    "cw": "content words",
    "words": "words of a query",
    "overlap": "words shared with the relevant documents",
}

# Of a training, as the ratio to its control's.
CONDITION = {
    "pairs": "pairs, in doublings",
    "documents": "documents seen, in doublings",
}

DATASETS, QUERIES = "datasets", "queries"


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
class QueryObservations:
    """The gains of a benchmark's queries (n,), mean over conditions and seeds, with covariates (n,) by name."""

    study: str
    family: str
    benchmark: str
    gains: Floats
    covariates: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Pooled:
    """A regression. ``level`` is over datasets or queries; ``terms`` its coefficients, the mean gain (at the mean of
    the covariates) among them over datasets. ``n`` observations in ``n_families`` judged families, crossed with
    ``n_corpora`` training corpora, of ``n_studies`` studies; ``between`` is the standard deviation between datasets
    beyond chance. ``problem`` says why there is no regression."""

    title: str
    level: str
    terms: tuple[Coefficient, ...] = ()
    n: int = 0
    n_datasets: int = 0
    n_families: int = 0
    n_corpora: int = 0
    n_studies: int = 0
    between: float = 0.0
    problem: str = ""
    left_out: tuple[str, ...] = field(default_factory=tuple)

    def term(self, name: str) -> Coefficient | None:
        return next((term for term in self.terms if term.name == name), None)


def observe(
    study: str,
    gains: Iterable[Gain],
    family_of: Mapping[str, str],
    corpus_of: Mapping[str, str],
    covariates: Callable[[Gain], Mapping[str, float]],
) -> list[Observation]:
    """The observations of a study's gains. ``family_of`` by benchmark, ``corpus_of`` by source."""
    return [
        Observation(
            study=study,
            family=family_of[g.benchmark],
            benchmark=g.benchmark,
            points=g.points,
            variance=max(1e-6, ((g.high - g.low) / (2 * 1.96)) ** 2),
            by_seed=g.by_seed,
            covariates=covariates(g),
            corpus=corpus_of.get(g.source, ""),
        )
        for g in gains
    ]


def over_datasets(title: str, observations: Sequence[Observation], names: Sequence[str] = ()) -> Pooled:
    """The mean gain, and its slopes on the covariates ``names``. A covariate that is not known for an observation takes
    the observation out, which ``left_out`` says."""
    known = [o for o in observations if all(np.isfinite(o.covariates.get(name, np.nan)) for name in names)]
    left_out = sorted({o.benchmark for o in observations} - {o.benchmark for o in known})
    families = [o.family for o in known]
    shape: dict[str, Any] = {
        "n": len(known),
        "n_datasets": len({o.benchmark for o in known}),
        "n_families": len(set(families)),
        "n_corpora": len({o.corpus for o in known}),
        "n_studies": len({o.study for o in known}),
    }
    if not known:
        return Pooled(title, DATASETS, problem="there is no observation.", left_out=tuple(left_out))
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
            y,
            {MEAN: np.ones(len(y)), **centred},
            families,
            weights,
            extra={MEAN: _of_seeds(known, weights)},
            crossed=[o.corpus for o in known],
        )
    except InputError as error:
        return Pooled(title, DATASETS, problem=error.message, left_out=tuple(left_out), **shape)
    return Pooled(title, DATASETS, tuple(terms), between=between, left_out=tuple(left_out), **shape)


def over_queries(title: str, clusters: Sequence[QueryObservations], names: Sequence[str]) -> Pooled:
    """The slopes of the gain on the covariates over the queries within benchmarks; each benchmark counts the same."""
    ys, families, weights = [], [], []
    columns: dict[str, list[Floats]] = {name: [] for name in names}
    used, left_out = [], []
    for c in clusters:
        rows = np.isfinite(c.gains)
        for name in names:
            rows &= np.isfinite(c.covariates[name])
        if rows.sum() < 3:
            left_out.append(c.benchmark)
            continue
        used.append(c)
        ys.append(c.gains[rows] - c.gains[rows].mean())
        for name in names:
            columns[name].append(c.covariates[name][rows] - c.covariates[name][rows].mean())
        families += [c.family] * int(rows.sum())
        weights.append(np.full(int(rows.sum()), 1 / rows.sum()))
    shape: dict[str, Any] = {
        "n": len(families),
        "n_datasets": len({c.benchmark for c in used}),
        "n_families": len(set(families)),
        "n_studies": len({c.study for c in used}),
    }
    if not ys:
        return Pooled(title, QUERIES, problem="there is no observation.", left_out=tuple(left_out))
    stacked = {name: np.concatenate(parts) for name, parts in columns.items()}
    varying = {name: values for name, values in stacked.items() if np.ptp(values) > 1e-9}
    try:
        terms = cluster_regression(np.concatenate(ys), dict(varying), families, np.concatenate(weights))
    except InputError as error:
        return Pooled(title, QUERIES, problem=error.message, left_out=tuple(left_out), **shape)
    return Pooled(title, QUERIES, tuple(terms), left_out=tuple(left_out), **shape)


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
