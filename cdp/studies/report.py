"""What a study's report holds: its facts, the rows of its main table, its gains and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cdp.evaluation import bm25
from cdp.principle import Correlation, Difference, PositiveRate, Threshold, level_of
from cdp.studies.config import StudyConfig
from cdp.studies.gains import Gain
from cdp.studies.plan import HYBRID, UNTRAINED, Cell, StudySource
from cdp.studies.pooling import Pooled
from cdp.studies.verdict import UNCLEAR, Verdict
from cdp.training.plan import rate


@dataclass(frozen=True, slots=True)
class BenchmarkFacts:
    """A benchmark of the study with the content words of its queries and the published advice for them."""

    name: str
    split: str
    n_queries: int
    n_documents: int
    cw: float
    cw_interval: tuple[float, float]
    language: str = ""
    family: str = ""
    in_domain: bool = False
    in_domain_of: tuple[str, ...] = ()
    """The sources that are of its own documents; ``in_domain`` where all are."""
    facts: Mapping[str, float] = field(default_factory=dict)
    """Means over its queries: ``words``, and ``overlap`` with the relevant documents."""

    @property
    def level(self) -> str:
        return level_of(self.cw)


@dataclass(frozen=True, slots=True)
class StudyRow:
    """One line of the main table: a way of training, NDCG@10 in percent on each benchmark, mean over ``n_seeds``.

    ``spread`` is the standard deviation over the seeds, without an entry where there is only one or all are the same;
    ``intervals`` bound each score (95%) by its variance over queries and seeds. ``held`` is ``Condition.held``.
    ``chosen_on_dev``: every checkpoint is the best of a dev split. ``average`` is None unless every benchmark has a
    score. ``pairs``, ``documents``, ``steps`` and ``seconds`` are of one training; 0 where it was not written down.
    """

    retriever: str
    source: str
    per_doc: int
    weighting: str
    n_seeds: int
    scores: Mapping[str, float]
    spread: Mapping[str, float]
    average: float | None
    pairs: int
    documents: int
    seconds: float
    steps: int = 0
    steps_per_epoch: int = 0
    held: str = ""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    chosen_on_dev: bool = False
    rate: float | None = None
    dev: tuple[tuple[int, float], ...] = ()
    """(step, mean NDCG@10 on the dev split in percent) of each evaluation while training."""

    @property
    def best_step(self) -> int | None:
        """The first step with the best mean dev score."""
        return max(self.dev, key=lambda point: (point[1], -point[0]))[0] if self.dev else None

    @property
    def best_dev(self) -> float | None:
        return max((score for _, score in self.dev), default=None)

    @property
    def cell(self) -> Cell:
        return Cell(self.retriever, self.source, self.per_doc, self.weighting, self.held, self.rate)

    @property
    def name(self) -> str:
        if self.retriever == bm25.NAME:
            return bm25.TITLE
        if self.source == UNTRAINED:
            return f"{self.retriever}, untrained"
        if self.source == HYBRID:
            return f"{bm25.TITLE} and {self.retriever}"
        weights = "" if self.weighting == "none" else f", {self.weighting}"
        held = f", {self.held}" if self.held else ""
        rates = "" if self.rate is None else f", learning rate {rate(self.rate)}"
        return f"{self.retriever}, {self.source}, Q/Doc {self.per_doc}{weights}{held}{rates}"


@dataclass(frozen=True)
class StudyReport:
    """What a study found so far. ``planned`` counts trainings, ``failures`` are (condition, reason).

    ``differences`` are the gains that the principle is about, one per independent dataset and condition; ``verdict``,
    ``threshold`` and ``correlations`` come from these. ``left_out`` names the benchmarks that are in none, and why;
    ``pooled`` are the regressions
    over datasets and over queries with their covariates.
    """

    id: str
    name: str
    state: str
    config: StudyConfig
    sources: tuple[StudySource, ...]
    benchmarks: tuple[BenchmarkFacts, ...]
    rows: tuple[StudyRow, ...]
    gains: tuple[Gain, ...]
    correlations: tuple[Correlation, ...]
    rates: tuple[PositiveRate, ...]
    threshold: Threshold | None
    no_threshold: str
    planned: int
    finished: int
    reused: int
    failures: tuple[tuple[str, str], ...]
    differences: tuple[Difference, ...] = ()
    verdict: Verdict = field(default_factory=lambda: Verdict(UNCLEAR, 0))
    pooled: tuple[Pooled, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[str, ...] = field(default_factory=tuple)
    limits: tuple[str, ...] = field(default_factory=tuple)

    def of(self, comparison: str) -> list[Gain]:
        """The gains of one comparison."""
        return [gain for gain in self.gains if gain.comparison == comparison]

    def to_dict(self) -> dict[str, Any]:
        """Everything, with plain values."""
        values = asdict(self)
        values["config"] = self.config.recorded()
        values["gains"] = [{**asdict(gain), "significant": gain.significant} for gain in self.gains]
        values["benchmarks"] = [{**asdict(b), "published_advice": b.level} for b in self.benchmarks]
        return values
