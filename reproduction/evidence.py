"""What the claims are judged by: the reports of the studies, and their gains pooled claim by claim.

A claim is judged by the studies whose plans speak of it, and by no other: two studies that share trainings (the grid of
weightings takes those of the first study) would count the same seeds twice in one model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cdp.base.statistics import SeedTest, two_level_test
from cdp.base.workspace import Workspace, read_json
from cdp.studies import StudyReport, records
from cdp.studies.gains import WEIGHTING, Gain, Scores
from cdp.studies.plan import Cell
from cdp.studies.pooling import Pooled
from cdp.studies.report import PoolInput, read_study
from reproduction.pooling import pool

DOCUMENTS, PAIRS, MINILM, LANGUAGES = (
    "human-equal-documents",
    "human-equal-pairs",
    "human-minilm",
    "human-languages",
)
RECORDED, TEMPLATE = "recorded-contrast", "template-contrast"
GRID, FRENCH, REASONING = "weighting-grid", "weighting-languages", "reasoning-grid"
FULL = "paper-full"

QUESTION_WORDS = "cw-question-words"


@dataclass(frozen=True)
class Pool:
    """The studies of one set of models, by the names of their plans; ``per_doc`` keeps to one Q/Doc."""

    plans: tuple[str, ...]
    per_doc: int | None = None


POOLS = {
    "people": Pool((DOCUMENTS, PAIRS, MINILM)),
    "contrast": Pool((RECORDED,)),
    "contrast at 1": Pool((RECORDED,), 1),
    "contrast at 5": Pool((RECORDED,), 5),
    "template": Pool((TEMPLATE,)),
    "weighting": Pool((GRID,)),
    "reasoning": Pool((REASONING,)),
}


@dataclass(frozen=True)
class Evidence:
    """``reports`` by plan, ``pools`` the models by the names of ``POOLS``. ``half`` is what counting question words
    gives back of the loss by CW weighting, beyond half of it, on the French set (points); None where not measured."""

    reports: Mapping[str, StudyReport] = field(default_factory=dict)
    pools: Mapping[str, Sequence[Pooled]] = field(default_factory=dict)
    half: SeedTest | None = None

    def model(self, pool: str, title: str) -> Pooled | None:
        return next((m for m in self.pools.get(pool, ()) if m.title == title), None)

    def gains(self, plan: str, comparison: str) -> list[Gain]:
        return self.reports[plan].of(comparison) if plan in self.reports else []

    def lacking(self, plans: Sequence[str]) -> list[str]:
        """The studies among ``plans`` that are not whole, in words: nothing is judged by what happens to be there."""
        found = []
        for plan in plans:
            report = self.reports.get(plan)
            if report is None:
                found.append(f"{plan} was not run")
            elif report.finished < report.planned or report.failures:
                found.append(f"{plan} has {report.finished} of {report.planned} trainings")
        return found


def gather(workspace: Workspace, reports: Mapping[str, StudyReport]) -> Evidence:
    """The evidence of the studies that are there."""
    pools = {}
    for name, wanted in POOLS.items():
        inputs = [_read(workspace, reports[plan]) for plan in wanted.plans if plan in reports]
        if wanted.per_doc is not None:
            inputs = [replace(i, gains=[g for g in i.gains if g.per_doc == wanted.per_doc]) for i in inputs]
        if inputs:
            pools[name] = pool(inputs)
    return Evidence(reports, pools, _half(workspace, reports.get(FRENCH)))


def in_domain(report: StudyReport, gain: Gain) -> bool:
    """Whether a gain is on documents of the source that was trained on, or on a benchmark that the plan calls so."""
    b = next(b for b in report.benchmarks if b.name == gain.benchmark)
    return b.in_domain or gain.source in b.in_domain_of


def french(report: StudyReport, weighting: str) -> Gain | None:
    """What a weighting does on the French set."""
    own = {b.name for b in report.benchmarks if b.language == "fr"}
    return next((g for g in report.of(WEIGHTING) if g.benchmark in own and g.weighting == weighting), None)


def _half(workspace: Workspace, report: StudyReport | None) -> SeedTest | None:
    """(counted - cw) - (none - cw) / 2: above 0 where counting question words takes more than half of the loss away."""
    gain = french(report, "cw") if report is not None else None
    if report is None or gain is None:
        return None
    shares = {QUESTION_WORDS: 1.0, "cw": -0.5, "none": -0.5}
    weights = {gain.cell._replace(weighting=name): share for name, share in shares.items()}
    return contrast(_read(workspace, report).scores, gain.benchmark, weights)


def contrast(
    scores: Mapping[Cell, Mapping[str, Scores]], benchmark: str, weights: Mapping[Cell, float]
) -> SeedTest | None:
    """Test a weighted sum of conditions on one benchmark over the seeds that all of them have; None where one of them
    was not evaluated."""
    if not all(benchmark in scores.get(cell, {}) for cell in weights):
        return None
    seeds = set.intersection(*(set(scores[cell][benchmark]) for cell in weights))
    sums = [
        np.sum([w * scores[cell][benchmark][seed] for cell, w in weights.items()], axis=0) for seed in sorted(seeds)
    ]
    return two_level_test(sums) if sums else None


def _read(workspace: Workspace, report: StudyReport) -> PoolInput:
    folder = workspace.job(report.id)
    return read_study(report.id, read_json(folder / "results" / "about.json"), list(records.list_records(folder)))
