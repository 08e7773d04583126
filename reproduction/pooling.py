"""The pooled models of the claims beside those of a study's report: with other facts of the queries held fixed,
over datasets and over single queries.

Over queries an observation is the gain of a query against the mean of its benchmark; each benchmark counts the same,
and errors are robust for families of benchmarks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.base.statistics import cluster_regression
from cdp.studies.gains import Gain, controls
from cdp.studies.plan import Cell
from cdp.studies.pooling import COVARIATES, Pooled, over_datasets
from cdp.studies.report import FAMILIES_PER_COVARIATE, OUT, PoolInput, gains_by_title, observations_of
from cdp.studies.report import pool as pool_of_report

Floats = NDArray[np.float64]

# Ends of the titles of these models.
HELD = ": by content words, length and overlap"
OVER_QUERIES = ": queries by content words"
HELD_OVER_QUERIES = ": queries by content words, length and overlap"


@dataclass(frozen=True, slots=True)
class QueryObservations:
    """The gains of a benchmark's queries (n,), mean over conditions and seeds, with covariates (n,) by name."""

    study: str
    family: str
    benchmark: str
    gains: Floats
    covariates: Mapping[str, Floats]


def pool(studies: Sequence[PoolInput]) -> list[Pooled]:
    """The models of a report, and for each comparison those with length and overlap held fixed."""
    several = list(COVARIATES)
    models = pool_of_report(studies)
    groups = gains_by_title(studies)
    for title, observations in observations_of(studies).items():
        if len({o.family for o in observations}) >= FAMILIES_PER_COVARIATE * len(several):
            models.append(over_datasets(f"{title}{HELD}", observations, several))
        if not title.endswith(OUT):
            continue
        clusters = [c for study, gains in groups[title] for c in _query_observations(study, gains)]
        if len({c.family for c in clusters}) >= FAMILIES_PER_COVARIATE:
            models.append(over_queries(f"{title}{OVER_QUERIES}", clusters, ["cw"]))
            models.append(over_queries(f"{title}{HELD_OVER_QUERIES}", clusters, several))
    return models


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
        "left_out": tuple(left_out),
    }
    if not ys:
        return Pooled(title, problem="there is no observation.", **shape)
    stacked = {name: np.concatenate(parts) for name, parts in columns.items()}
    varying = {name: values for name, values in stacked.items() if np.ptp(values) > 1e-9}
    try:
        terms = cluster_regression(np.concatenate(ys), dict(varying), families, np.concatenate(weights))
    except InputError as error:
        return Pooled(title, problem=error.message, **shape)
    return Pooled(title, tuple(terms), **shape)


def _query_observations(study: PoolInput, gains: Sequence[Gain]) -> list[QueryObservations]:
    """The gains of single queries, for benchmarks whose queries' facts are known."""
    chosen = {(g.cell, g.comparison) for g in gains}
    judged = {g.benchmark for g in gains}
    observations = []
    for b, described in zip(study.benchmarks, study.about, strict=True):
        if b.name not in judged or "cw_of" not in described:
            continue
        found = _query_gains(study, b.name, chosen)
        ids = [str(i) for i in np.sort(np.asarray(list(described["cw_of"])))]  # as ``read_scores`` orders the scores
        if found is None or len(found) != len(ids):
            continue
        known = described.get("facts_of", {})
        covariates = {name: _column(known, ids, name) for name in COVARIATES if name != "cw"}
        covariates["cw"] = np.array([described["cw_of"][i] for i in ids], np.float64)
        observations.append(QueryObservations(study.study, b.family or b.name, b.name, found, covariates))
    return observations


def _query_gains(study: PoolInput, benchmark: str, chosen: Collection[tuple[Cell, str]]) -> Floats | None:
    """The gain of each query of a benchmark, mean over seeds and the ``chosen`` conditions as (cell, comparison)."""
    of_conditions = []
    for cell in study.scores:
        for comparison, control in controls(cell, study.scores):
            if (cell, comparison) not in chosen:
                continue
            mine, others = study.scores[cell].get(benchmark, {}), study.scores[control].get(benchmark, {})
            differences = [mine[seed] - others[seed] for seed in mine if seed in others]
            if differences:
                of_conditions.append(np.mean(differences, axis=0))
    return np.mean(of_conditions, axis=0) if of_conditions else None


def _column(facts: Mapping[str, Mapping[str, Any]], ids: Sequence[str], name: str) -> Floats:
    """One fact of the queries, in the order of ``ids``; NaN where it is not known."""
    return np.array([np.nan if facts.get(i, {}).get(name) is None else float(facts[i][name]) for i in ids])
