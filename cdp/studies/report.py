"""What a study's report holds: its facts, the rows of its main table, its gains and what follows from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from cdp.base.statistics import has_spread
from cdp.base.text import counted, signed
from cdp.evaluation import bm25
from cdp.principle import (
    PARAPHRASE,
    SCALING,
    WEIGHTING,
    Correlation,
    Difference,
    PositiveRate,
    Threshold,
    correlation_table,
    dataset_means,
    level_of,
    positive_rates,
    threshold,
    why_no_threshold,
)
from cdp.studies.config import BOTH, INFONCE, StudyConfig, stored
from cdp.studies.estimate import limits_of_design
from cdp.studies.gains import LOSS, REASONED, TITLES, TRAINING, Gain, Scores, gains, read_scores
from cdp.studies.plan import HYBRID, PARAPHRASED, UNTRAINED, Cell, StudySource, conditions, method_of, untrained
from cdp.studies.pooling import COVARIATES, Observation, Pooled, over_datasets
from cdp.studies.verdict import UNCLEAR, Kin, Verdict, as_independent, left_out, power_text, sentence, verdict
from cdp.training.plan import rate
from cdp.training.reasoning import QUERY_ONLY

# With fewer datasets a correlation over them rests on very little, even with a small p.
FEW_DATASETS = 6

OUT, IN = "out of domain", "in-domain"

# With fewer independent families for each covariate no slope is fitted: it would explain all by chance.
FAMILIES_PER_COVARIATE = 3

# At the end of the title of a model that has the slope on content words.
BY_CW = ": by content words"

# The comparisons that the principle is about, in the order of the report.
PRINCIPLE = (SCALING, PARAPHRASE, WEIGHTING, LOSS, REASONED)

# Those with a mean over benchmarks, in the order of the report.
POOLED = (*PRINCIPLE, TRAINING)


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

    ``spread`` is the standard deviation over the seeds, without an entry where there is only one or all are the same.
    ``held`` is ``Condition.held``.
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
    chosen_on_dev: bool = False
    rate: float | None = None
    loss: str = INFONCE
    query_source: str = QUERY_ONLY
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
        return Cell.of(self)

    @property
    def name(self) -> str:
        if self.retriever == bm25.NAME:
            return bm25.TITLE
        if self.source == UNTRAINED:
            return f"{self.retriever}, untrained"
        if self.source == HYBRID:
            return f"{bm25.TITLE} and {self.retriever}"
        return f"{self.retriever}, {self.source}, Q/Doc {self.per_doc}{self.cell.details}"


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


def findings(report: StudyReport) -> list[str]:
    """The answer, most important first. Nothing is said that a comparison of the study does not show."""
    sentences = [*_rates(report), *_best(report)]
    for comparison in PRINCIPLE:
        by_condition: dict[Cell, list[Gain]] = defaultdict(list)
        for gain in report.of(comparison):
            by_condition[gain.cell._replace(per_doc=0)].append(gain)
        sentences += [_compared(comparison, group) for group in by_condition.values()]
    if report.of(SCALING) or report.of(PARAPHRASE):
        sentences.append(sentence(report.verdict))
    return sentences


def _rates(report: StudyReport) -> list[str]:
    """The learning rate that the dev split chooses, for each retriever whose trainings differ in it alone."""
    sentences = []
    for retriever in report.config.items("retrievers") if len(report.config.rates()) > 1 else ():
        rows = [row for row in report.rows if row.retriever == retriever and row.rate is not None and row.best_dev]
        if len({row.cell._replace(rate=None) for row in rows}) != 1:
            continue
        first, *others = sorted(rows, key=lambda row: (-(row.best_dev or 0.0), row.rate))
        text = (
            f"{retriever}: learning rate {rate(first.rate or 0.0)}, dev NDCG@10 {first.best_dev:.2f} at step "
            f"{first.best_step:,}"
        )
        if others:
            text += f", {(first.best_dev or 0.0) - (others[0].best_dev or 0.0):.2f} points ahead of the next"
        at_end = {min(report.config.rates(), key=_number): "lower", max(report.config.rates(), key=_number): "higher"}
        if first.rate in at_end and report.finished == report.planned:
            text += f". It is at the end of the grid: a {at_end[first.rate]} one may be better"
        sentences.append(f"{text}.")
    return sentences


def _number(value: float | None) -> float:
    return value or 0.0


def _best(report: StudyReport) -> list[str]:
    complete = [row for row in report.rows if row.average is not None and row.source != UNTRAINED]
    sentences = []
    for retriever in dict.fromkeys(row.retriever for row in complete):
        rows = [row for row in complete if row.retriever == retriever]
        best = max(rows, key=lambda row: row.average or 0.0)
        before = next(
            (row.average for row in report.rows if row.retriever == retriever and row.source == UNTRAINED), None
        )
        against = "" if before is None else f", {signed((best.average or 0.0) - before)} against the untrained one"
        sentences.append(
            f"Best on average over {counted(len(report.benchmarks), 'benchmark')}: {best.name}, NDCG@10 "
            f"{best.average:.2f}{against}."
        )
    return sentences


def _compared(comparison: str, group: Sequence[Gain]) -> str:
    """One comparison in a sentence: how many gain and lose, and the values at its highest Q/Doc."""
    up = [g for g in group if g.significant and g.points > 0]
    down = [g for g in group if g.significant and g.points < 0]
    most = max(g.per_doc for g in group)
    listed = ", ".join(
        f"{signed(g.points)}{'*' if g.significant else ''} (95% {signed(g.low)} to {signed(g.high)}) on {g.benchmark} "
        f"(CW {g.cw:.1f})"
        for g in sorted((g for g in group if g.per_doc == most), key=lambda g: g.cw)
    )
    first = group[0]
    who = first.condition
    if comparison == PARAPHRASE:
        who = f"{first.retriever}{first.cell.details}"
    if len(group) == 1:
        return f"{TITLES[comparison]} ({who}), Q/Doc {most}: {listed}."
    return (
        f"{TITLES[comparison]} ({who}): of {counted(len(group), 'difference')} {len(up)} gain and {len(down)} lose "
        f"significantly. At Q/Doc {most}: {listed}."
    )


def limits(report: StudyReport) -> list[str]:
    """What cannot be concluded, and why."""
    sentences: list[str] = []
    missing = report.planned - report.finished
    if missing:
        failed = [f for f in report.failures if not f[0].startswith(UNTRAINED)]
        why = f", {len(failed)} of them because they failed" if failed else ""
        sentences.append(
            f"{missing} of {counted(report.planned, 'training')} are missing{why}: comparisons with them are left out, "
            "and means are over the seeds that are there."
        )
    for condition, reason in report.failures:
        sentences.append(f"Failed: {condition}. {reason}")
    n = report.verdict.n
    sentences += [f"Left out of the line through CW: {name}, because {why}." for name, why in report.left_out.items()]
    members: dict[str, list[str]] = defaultdict(list)
    for b in report.benchmarks:
        if b.name not in report.left_out:
            members[b.family or b.name].append(b.name)
    for family, group in members.items():
        if len(group) > 1:
            sentences.append(f"{', '.join(group)} are of one source ({family}) and count as one dataset.")
    if report.no_threshold:
        sentences.append(f"No threshold and no correlation of its own. {report.no_threshold}")
    elif n < FEW_DATASETS:
        sentences.append(
            f"A correlation over {n} datasets rests on {n} independent observations, however many conditions there "
            f"are: it can suggest a relation, not establish one. {power_text(report.verdict.power)}"
        )
    still = [row for row in report.rows if row.n_seeds > 1 and not row.spread]
    if still:
        one_batch = all(row.steps_per_epoch == 1 for row in still)
        why = (
            "each step saw all pairs in one batch, so the seed only changes their order"
            if one_batch
            else "nothing that the seed decides changed the result"
        )
        sentences.append(
            f"No spread over the seeds of {_listed(row.name for row in still)}: {why}. These are repetitions of one "
            "training, not a spread of 0; a smaller batch gives one."
        )
    sentences += limits_of_design(report.config, report.sources)
    if not report.of(TRAINING) and report.rows:
        sentences.append("The untrained retriever was not evaluated, so gains from training are unknown.")
    return sentences


def _listed(names: Iterable[str]) -> str:
    all_names = list(names)
    return f"{', '.join(all_names[:3])}{f' and {len(all_names) - 3} more' if len(all_names) > 3 else ''}"


def build(
    study_id: str, name: str, state: str, about: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> StudyReport:
    """The report of a study from ``results/about.json`` (``about``) and the records of its conditions."""
    config, sources = plan_of(about)
    read = read_study(study_id, about, records)
    benchmarks, all_gains = read.benchmarks, list(read.gains)
    planned = conditions(config, sources)
    records = latest(records)
    foreign = [g for g in all_gains if g.source not in {b.name: b.in_domain_of for b in benchmarks}[g.benchmark]]
    all_own = own_differences(all_gains)
    kin = [Kin(b.name, b.cw, b.language, b.family, b.in_domain) for b in benchmarks]
    excluded = left_out(kin)
    own = as_independent(own_differences(foreign), kin)
    reason = why_no_threshold(own) if all_own else "There is no comparison of more queries per document with one."
    line = None if reason else threshold(own)
    compared = _as_differences(foreign, PRINCIPLE)
    failures = tuple(
        (str(record["failed"]), str(record["failure"]["message"])) for record in records if record.get("failure")
    )
    finished = [r for r in records if not r.get("failure") and r["condition"] is not None]
    report = StudyReport(
        id=study_id,
        name=name,
        state=state,
        config=config,
        sources=tuple(sources),
        benchmarks=tuple(benchmarks),
        rows=tuple(read.rows),
        gains=tuple(all_gains),
        correlations=tuple(correlation_table(as_independent(compared, kin))),
        rates=tuple(positive_rates(all_own)) if all_own else (),
        differences=own,
        verdict=verdict(*(values.tolist() for values in dataset_means(own))),
        pooled=tuple(pool([read])),
        left_out=excluded,
        threshold=line,
        no_threshold=reason,
        planned=len(planned),
        finished=len(finished),
        reused=sum(1 for record in finished if record.get("reused_from")),
        failures=failures,
    )
    return StudyReport(**{**report.__dict__, "findings": tuple(findings(report)), "limits": tuple(limits(report))})


def plan_of(about: Mapping[str, Any]) -> tuple[StudyConfig, list[StudySource]]:
    """The plan and the sources of a study, from ``results/about.json``."""
    return stored(about["config"]), [StudySource.of(source) for source in about["sources"]]


def read_study(study_id: str, about: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> PoolInput:
    """The scores, rows and gains of a study, with the facts of its benchmarks: what its report is made of."""
    config, sources = plan_of(about)
    benchmarks = tuple(
        BenchmarkFacts(
            **{name: b[name] for name in ("name", "split", "n_queries", "n_documents", "cw")},
            cw_interval=tuple(b["cw_interval"]),
            **{name: b[name] for name in ("language", "family", "in_domain") if name in b},
            in_domain_of=tuple(b.get("in_domain_of", ())),
            facts={
                name: float(np.mean(values))
                for name in COVARIATES
                if (values := [f[name] for f in b.get("facts_of", {}).values() if f.get(name) is not None])
            },
        )
        for b in about["benchmarks"]
    )
    names = _names(benchmarks)
    name_of = {b["place"]: label for b, label in zip(about["benchmarks"], names, strict=True)}
    benchmarks = tuple(replace(b, name=label) for b, label in zip(benchmarks, names, strict=True))
    scores, behind = read_scores(latest(records), name_of)
    ordered = {cell: scores[cell] for cell in _order(config, sources) if cell in scores}
    return PoolInput(
        study=study_id,
        gains=gains(ordered, {b.name: b.cw for b in benchmarks}),
        benchmarks=benchmarks,
        rows=[_row(cell, by_benchmark, behind[cell], names) for cell, by_benchmark in ordered.items()],
        scores=ordered,
        about=about["benchmarks"],
        corpus_of={source.label: source.corpus for source in sources},
        design="equal documents" if config.held_equal == BOTH else config.held_equal,
    )


def latest(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of several finished records of one condition the newest: a resumed study may hold an earlier way of scoring."""
    newest: dict[str, Mapping[str, Any]] = {}
    for number, record in enumerate(sorted(records, key=lambda record: str(record.get("created", "")))):
        finished = not record.get("failure")
        # A hybrid is of its retriever, and no condition either: it would replace the untrained one.
        what = f"{record['retriever']} {record['condition']} {record.get('hybrid', False)}"
        newest[what if finished else f"failure {number}"] = record
    return list(newest.values())


def own_differences(all_gains: Sequence[Gain]) -> tuple[Difference, ...]:
    """The gains that the published threshold is drawn from: more different queries per document, equal weights where
    there are such trainings, and equal documents as in the paper where a study holds pairs equal besides. Paraphrases
    are the control and do not count as more different queries."""
    compared = [g for g in all_gains if g.comparison in (SCALING, PARAPHRASE)]
    about = [g for g in compared if method_of(g.source) != PARAPHRASED and not g.held]
    return _as_differences([g for g in about if g.cell.usual] or about, (SCALING, PARAPHRASE))


def _as_differences(all_gains: Sequence[Gain], comparisons: Sequence[str]) -> tuple[Difference, ...]:
    return tuple(
        Difference(g.condition, g.comparison, g.per_doc, g.benchmark, g.cw, g.points)
        for g in all_gains
        if g.comparison in comparisons
    )


def _names(benchmarks: Sequence[BenchmarkFacts]) -> list[str]:
    """Names of the benchmarks; with the split where two have the same name."""
    plain = [b.name for b in benchmarks]
    return [b.name if plain.count(b.name) == 1 else f"{b.name} {b.split}" for b in benchmarks]


def _order(config: StudyConfig, sources: Sequence[StudySource]) -> list[Cell]:
    trained = dict.fromkeys(c.cell for c in conditions(config, sources))
    names = [bm25.NAME, *config.items("retrievers")]
    return sorted([*untrained(config), *trained], key=lambda cell: names.index(cell.retriever))


def _row(
    cell: Cell,
    by_benchmark: Mapping[str, Mapping[int, Any]],
    records: Sequence[Mapping[str, Any]],
    names: Sequence[str],
) -> StudyRow:
    means = {name: [float(v.mean()) for v in by_benchmark[name].values()] for name in names if name in by_benchmark}
    training = [record["training"] for record in records if record.get("training")]
    curves = [{int(e["step"]): float(e["ndcg@10"]) for e in t.get("evaluations", ())} for t in training]
    shared = sorted(set.intersection(*map(set, curves))) if curves else []  # steps that every seed was evaluated at
    return StudyRow(
        **cell._asdict(),
        n_seeds=max(len(values) for values in means.values()),
        scores={name: float(np.mean(values)) for name, values in means.items()},
        spread={name: float(np.std(values, ddof=1)) for name, values in means.items() if has_spread(values)},
        average=float(np.mean([np.mean(v) for v in means.values()])) if len(means) == len(names) else None,
        pairs=training[0]["pairs"] if training else 0,
        documents=training[0]["documents"] if training else 0,
        seconds=float(np.mean([t["seconds"] for t in training])) if training else 0.0,
        steps=int(training[0].get("steps", 0)) if training else 0,
        steps_per_epoch=int(training[0].get("steps_per_epoch", 0)) if training else 0,
        dev=tuple((step, float(np.mean([curve[step] for curve in curves]))) for step in shared),
        chosen_on_dev=bool(training) and all(t.get("best_step") is not None for t in training),
    )


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
    corpus_of: Mapping[str, str] = field(default_factory=dict)
    """{source: the corpus whose queries it holds}."""
    design: str = "equal documents"
    """What the study holds equal, where a gain does not say (``Gain.held``)."""


def pool(studies: Sequence[PoolInput]) -> list[Pooled]:
    """The mean gain of each comparison, out of domain first, and its slope on content words."""
    models: list[Pooled] = []
    for title, observations in observations_of(studies).items():
        models.append(over_datasets(title, observations))
        if len({o.family for o in observations}) >= FAMILIES_PER_COVARIATE:
            models.append(over_datasets(f"{title}{BY_CW}", observations, ["cw"]))
    return models


def observations_of(studies: Sequence[PoolInput]) -> dict[str, list[Observation]]:
    """{comparison, what tells it apart, and domain, in words: its gains as observations}."""
    observations = {}
    for title, groups in gains_by_title(studies).items():
        observations[title] = [
            Observation(
                study=study.study,
                family=facts.family or facts.name,
                benchmark=g.benchmark,
                points=g.points,
                variance=max(1e-6, ((g.high - g.low) / (2 * 1.96)) ** 2),
                by_seed=g.by_seed,
                covariates={**facts.facts, "cw": facts.cw},
                corpus=study.corpus_of.get(g.source, ""),
            )
            for study, gains in groups
            for g in gains
            for facts in study.benchmarks
            if facts.name == g.benchmark
        ]
    return observations


def gains_by_title(studies: Sequence[PoolInput]) -> dict[str, list[tuple[PoolInput, list[Gain]]]]:
    """{title of a pooled model: the gains of each study}, in the order of the report."""
    groups: dict[tuple[str, str, str], dict[str, list[Gain]]] = defaultdict(lambda: defaultdict(list))
    by_id = {study.study: study for study in studies}
    scaling = [g for study in studies for g in study.gains if g.comparison == SCALING]
    methods = {method_of(g.source) for g in scaling} - {PARAPHRASED}
    for study in studies:
        own = {b.name: b for b in study.benchmarks}
        for g in study.gains:
            # What training gains or loses is a question of the loss, whatever it was trained on.
            whole = g.comparison in (TRAINING, LOSS)
            if g.comparison not in POOLED or (method_of(g.source) == PARAPHRASED and not whole):
                continue
            if g.weighting != "none" and g.comparison != WEIGHTING:
                continue
            if g.query_source != QUERY_ONLY and g.comparison != REASONED:
                continue
            in_domain = own[g.benchmark].in_domain or g.source in own[g.benchmark].in_domain_of
            loss = "" if g.loss == INFONCE else f", {g.loss}"
            if g.comparison == WEIGHTING:
                labels = [f", {g.weighting}{loss}"]
            elif g.comparison == REASONED:
                labels = [f", {g.query_source}{loss}"]
            else:
                labels = [f", {g.held or study.design}{loss}"]
            if g.comparison == SCALING and len(methods) > 1:
                labels.append(f"{labels[0]}, {method_of(g.source)} queries")
            for label in labels:
                groups[g.comparison, label, IN if in_domain else OUT][study.study].append(g)
    return {
        f"{TITLES[comparison]}{label}, {domain}": [(by_id[s], gains) for s, gains in by_study.items()]
        for (comparison, label, domain), by_study in sorted(
            groups.items(), key=lambda item: (POOLED.index(item[0][0]), item[0][2] == IN, item[0][1])
        )
    }
