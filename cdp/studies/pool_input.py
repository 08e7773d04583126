"""What a study gives to the pooled models (``pooling``), and which models there are, for one study or several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cdp.principle import PARAPHRASE, SCALING, WEIGHTING
from cdp.studies import facts
from cdp.studies.gains import TITLES, Gain, Scores, query_gains
from cdp.studies.plan import PARAPHRASED, Cell, method_of
from cdp.studies.pooling import (
    COVARIATES,
    Observation,
    Pooled,
    QueryObservations,
    observe,
    over_datasets,
    over_queries,
)
from cdp.studies.report import BenchmarkFacts, StudyRow

OUT, IN = "out of domain", "in-domain"

FAMILIES_PER_COVARIATE = 3
"""With fewer independent families for each covariate no model of several is fitted: it would explain all by chance."""


@dataclass(frozen=True)
class PoolInput:
    """A study's gains, with what is known of its benchmarks and trainings. ``about`` are the benchmarks as the worker
    described them, in the order of ``benchmarks``."""

    study: str
    gains: Sequence[Gain]
    benchmarks: Sequence[BenchmarkFacts]
    rows: Sequence[StudyRow]
    scores: Mapping[Cell, Mapping[str, Scores]]
    about: Sequence[Mapping[str, Any]]
    design: str = "equal documents"
    """What the study holds equal, where a gain does not say (``Gain.held``)."""


def pool(studies: Sequence[PoolInput]) -> list[Pooled]:
    """Every pooled model that the studies allow, out of domain first."""
    models: list[Pooled] = []
    for (comparison, group, domain), chosen in _groups(studies).items():
        title = f"{TITLES[comparison]}{group}, {domain}"
        observations = [o for study, gains in chosen for o in _observations(study, gains)]
        families = len({o.family for o in observations})
        models.append(over_datasets(title, observations))
        if families >= FAMILIES_PER_COVARIATE:
            models.append(over_datasets(f"{title}: by content words", observations, ["cw"]))
        several = ["cw", "words", "overlap"]
        if families >= FAMILIES_PER_COVARIATE * len(several):
            models.append(over_datasets(f"{title}: by content words, length and overlap", observations, several))
        trainings = ["cw", "pairs", "documents"]
        if families >= FAMILIES_PER_COVARIATE * len(trainings) and comparison == SCALING:
            models.append(over_datasets(f"{title}: by content words, pairs and documents", observations, trainings))
        if domain == OUT:
            clusters = [c for study, gains in chosen for c in _query_observations(study, gains)]
            if len({c.family for c in clusters}) >= FAMILIES_PER_COVARIATE:
                models.append(over_queries(f"{title}: queries by content words", clusters, ["cw"]))
                models.append(over_queries(f"{title}: queries by content words, length and overlap", clusters, several))
    return models


def _groups(studies: Sequence[PoolInput]) -> dict[tuple[str, str, str], list[tuple[PoolInput, list[Gain]]]]:
    """{(comparison, what tells it apart, domain): the gains of each study}."""
    groups: dict[tuple[str, str, str], dict[str, list[Gain]]] = defaultdict(lambda: defaultdict(list))
    by_id = {study.study: study for study in studies}
    for study in studies:
        in_domain_of = {b.name: b.in_domain_of for b in study.benchmarks}
        everywhere = {b.name for b in study.benchmarks if b.in_domain}
        scaling = [g for other in studies for g in other.gains if g.comparison == SCALING]
        methods = {method_of(g.source) for g in scaling} - {PARAPHRASED}
        for g in study.gains:
            if g.comparison not in (SCALING, PARAPHRASE, WEIGHTING) or method_of(g.source) == PARAPHRASED:
                continue
            if g.weighting != "none" and g.comparison != WEIGHTING:
                continue
            domain = IN if g.source in in_domain_of[g.benchmark] or g.benchmark in everywhere else OUT
            labels = [f", {g.weighting}"] if g.comparison == WEIGHTING else [f", {g.held or study.design}"]
            if g.comparison == SCALING and len(methods) > 1:
                labels.append(f"{labels[0]}, {method_of(g.source)} queries")
            for label in labels:
                groups[g.comparison, label, domain][study.study].append(g)
    order = (SCALING, PARAPHRASE, WEIGHTING)
    return {
        key: [(by_id[study], gains) for study, gains in groups[key].items()]
        for key in sorted(groups, key=lambda key: (order.index(key[0]), key[2] == IN, key[1]))
    }


def _observations(study: PoolInput, gains: Sequence[Gain]) -> list[Observation]:
    family_of = {b.name: b.family or b.name for b in study.benchmarks}
    known = {b.name: {**b.facts, "cw": b.cw} for b in study.benchmarks}
    rows = {(r.retriever, r.source, r.per_doc, r.weighting, r.held): r for r in study.rows}

    def covariates(g: Gain) -> dict[str, float]:
        values = dict(known[g.benchmark])
        mine = rows.get((g.retriever, g.source, g.per_doc, g.weighting, g.held))
        control = rows.get((g.retriever, g.source, 1, g.weighting, ""))
        if g.comparison == SCALING and mine and control:
            for name in ("pairs", "documents", "steps"):
                before, after = getattr(control, name), getattr(mine, name)
                if before and after:
                    values[name] = float(np.log2(after / before))
        return values

    return observe(study.study, gains, family_of, covariates)


def _query_observations(study: PoolInput, gains: Sequence[Gain]) -> list[QueryObservations]:
    """The gains of single queries, for benchmarks whose queries' facts are known."""
    chosen = {((g.retriever, g.source, g.per_doc, g.weighting, g.held), g.comparison) for g in gains}
    judged = {g.benchmark for g in gains}
    observations = []
    for b, described in zip(study.benchmarks, study.about, strict=True):
        if b.name not in judged or "cw_of" not in described:
            continue
        found = query_gains(study.scores, b.name, chosen)
        ids = [str(i) for i in np.sort(np.asarray(list(described["cw_of"])))]  # as ``read_scores`` orders the scores
        if found is None or len(found) != len(ids):
            continue
        known = described.get("facts_of", {})
        covariates = {name: facts.columns(known, ids, name) for name in COVARIATES if name != "cw"}
        covariates["cw"] = np.array([described["cw_of"][i] for i in ids], np.float64)
        observations.append(QueryObservations(study.study, b.family or b.name, b.name, found, covariates))
    return observations
