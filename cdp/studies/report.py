"""A study's report: rows (untrained, BM25, hybrid), gains, findings and limits in sentences, best learning rate."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from cdp.base.condition import (
    EQUAL_DOCUMENTS,
    HYBRID,
    INFONCE,
    PARAPHRASED,
    QUERY_ONLY,
    UNTRAINED,
    UNWEIGHTED,
    Condition,
    flat,
)
from cdp.base.errors import some
from cdp.base.records import Count, Real, fields, whole
from cdp.base.statistics import seed_spread
from cdp.base.text import counted, rate, signed
from cdp.principle import PARAPHRASE, SCALING, WEIGHTING, level_of
from cdp.principle.decide import ArmDifference
from cdp.retrievers import bm25
from cdp.studies.config import BOTH, StudyConfig, stored
from cdp.studies.estimate import limits_of_design
from cdp.studies.gains import (
    COVARIATES,
    CW_BESIDE_RI,
    LOSS,
    REASONED,
    TITLES,
    TRAINING,
    WEIGHED,
    BySeed,
    Gain,
    Observation,
    Pooled,
    controls,
    gains,
    over_datasets,
    read_scores,
)
from cdp.studies.plan import StudySource, conditions, untrained

OUT, IN = "out of domain", "in-domain"

# With fewer independent families for each covariate no slope is fitted: it would explain all by chance.
FAMILIES_PER_COVARIATE = 3

# At the end of the title of a model that has the slope on content words.
BY_CW = ": by content words"

# The comparisons that the principle is about, in the order of the report.
PRINCIPLE = (SCALING, PARAPHRASE, WEIGHTING, WEIGHED, CW_BESIDE_RI, LOSS, REASONED)


@dataclass(frozen=True, slots=True)
class BenchmarkFacts:
    """A benchmark of a study: the content words of its queries, and what it shares with other benchmarks (``family``)
    and with the training documents. ``in_domain_of`` are the sources that are of its own documents, ``in_domain``
    whether all are; ``facts`` are means over its queries: ``words``, and ``overlap`` with the relevant documents."""

    name: str
    cw: float
    split: str = ""
    n_queries: int = 0
    n_documents: int = 0
    cw_interval: tuple[float, float] = (0.0, 0.0)
    language: str = ""
    family: str = ""
    in_domain: bool = False
    in_domain_of: tuple[str, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """The published advice for its mean CW."""
        return level_of(self.cw)


@dataclass(frozen=True, slots=True)
class StudyRow:
    """One line of the main table: a way of training, NDCG@10 in percent on each benchmark, mean over ``n_seeds``.

    ``spread`` is the standard deviation over the seeds, without an entry where there is only one or all are the same.
    ``average`` is the mean out of domain, in-domain where all benchmarks are; None unless each of these has a score, as
    ``average_in_domain``, which is beside it where there are both. ``pairs``, ``documents``,
    ``steps`` and ``seconds`` are of one training; 0 where it was not written down. ``dev`` holds (step, mean NDCG@10 on
    the dev split in percent) of each evaluation while training.
    """

    condition: Condition
    n_seeds: int
    scores: Mapping[str, float]
    spread: Mapping[str, float]
    average: float | None
    average_in_domain: float | None
    pairs: int
    documents: int
    seconds: float
    steps: int = 0
    steps_per_epoch: int = 0
    dev: tuple[tuple[int, float], ...] = ()

    @property
    def best_step(self) -> int | None:
        """The first step with the best mean dev score."""
        if not self.dev:
            return None

        step, _ = max(self.dev, key=lambda point: (point[1], -point[0]))
        return step

    @property
    def best_dev(self) -> float | None:
        return max(map(itemgetter(1), self.dev), default=None)

    @property
    def name(self) -> str:
        return self.condition.name


@dataclass(frozen=True)
class StudyScores:
    """What a study measured: the ``scores`` of every query, the ``rows`` and ``gains`` made of them, and its
    benchmarks. ``corpus_of`` holds {source: the corpus whose queries it holds}, ``design`` what the study holds equal
    where a gain does not say (``Condition.held``)."""

    study: str
    gains: Sequence[Gain]
    benchmarks: Sequence[BenchmarkFacts]
    rows: Sequence[StudyRow]
    scores: Mapping[Condition, Mapping[str, BySeed]]
    corpus_of: Mapping[str, str]
    design: str


@dataclass(frozen=True)
class StudyReport:
    """What a study found so far. ``planned`` counts trainings, ``failures`` are (condition, reason).

    ``pooled`` are the regressions over datasets, ``leaks`` sentences on judged queries that it was trained on,
    ``findings`` the answer, most important first, and ``limits`` what cannot be concluded, and why.
    """

    id: str
    name: str
    state: str
    config: StudyConfig
    sources: tuple[StudySource, ...]
    benchmarks: tuple[BenchmarkFacts, ...]
    rows: tuple[StudyRow, ...]
    gains: tuple[Gain, ...]
    planned: int
    finished: int
    reused: int
    failures: tuple[tuple[str, str], ...]
    pooled: tuple[Pooled, ...]
    leaks: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """How many trainings failed; a baseline that failed is none."""
        return sum(not condition.startswith(UNTRAINED) for condition, _ in self.failures)

    def of(self, comparison: str) -> list[Gain]:
        """The gains of one comparison."""
        return [gain for gain in self.gains if gain.comparison == comparison]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        values = asdict(self)
        values["config"] = self.config.recorded()
        values["rows"] = list(map(flat, self.rows))
        values["gains"] = [{**flat(gain), "significant": gain.significant} for gain in self.gains]
        values["benchmarks"] = [{**asdict(b), "published_advice": b.level} for b in self.benchmarks]
        return values


def _findings(report: StudyReport) -> Iterator[str]:
    yield from _rates(report)
    yield from _best(report)
    for comparison in PRINCIPLE:
        by_condition: dict[Condition, list[Gain]] = defaultdict(list)
        for gain in report.of(comparison):
            by_condition[gain.condition._replace(per_doc=0)].append(gain)
        for group in by_condition.values():
            yield _compared(comparison, group)


def _rates(report: StudyReport) -> Iterator[str]:
    """The learning rate that the dev split chooses, for each retriever whose trainings differ in it alone."""
    tried = [value for value in report.config.rates if value is not None]
    if len(tried) < 2:
        return

    at_end = {min(tried): "lower", max(tried): "higher"}
    for retriever in report.config.retrievers:
        rows: list[StudyRow] = []
        recipes: set[Condition] = set()
        for row in report.rows:
            if row.condition.retriever == retriever and row.condition.rate is not None and row.best_dev:
                rows.append(row)
                recipes.add(row.condition._replace(rate=None))

        if len(recipes) != 1:
            continue

        first, *others = sorted(rows, key=lambda row: (-(row.best_dev or 0.0), row.condition.rate))
        text = (
            f"{retriever}: learning rate {rate(first.condition.rate or 0.0)}, dev NDCG@10 {first.best_dev:.2f} at step "
            f"{first.best_step:,}"
        )

        if others:
            text += f", {(first.best_dev or 0.0) - (others[0].best_dev or 0.0):.2f} points ahead of the next"
        if first.condition.rate in at_end and report.finished == report.planned:
            text += f". It is at the end of the grid: a {at_end[first.condition.rate]} one may be better"

        yield f"{text}."


def _best(report: StudyReport) -> Iterator[str]:
    """The best training of each retriever, and what is above it without a training."""
    plain: list[StudyRow] = []
    trained: dict[str, list[StudyRow]] = defaultdict(list)
    for row in report.rows:
        if row.average is None:
            continue
        if row.condition.source in (UNTRAINED, HYBRID):
            plain.append(row)
        else:
            trained[row.condition.retriever].append(row)

    out, within = domains(report.benchmarks)
    over = f"on average over {counted(len(out or within), 'benchmark')}"
    if out and within:
        over += f" {OUT}"

    for rows in trained.values():
        best, chosen = _best_of(rows, one_dev=len(report.config.dev) == 1)
        yield f"Best training{chosen} {over}: {best.name}, NDCG@10 {best.average:.2f}{_against(best, plain)}."


def _best_of(rows: Sequence[StudyRow], *, one_dev: bool) -> tuple[StudyRow, str]:
    """(the best of a retriever's trainings, a clause that says so where dev chose it), else by the reported scores."""
    # Scores on several dev splits, one for each language, are not comparable.
    on_dev = [row for row in rows if row.best_dev is not None and one_dev]
    if on_dev:
        return max(on_dev, key=lambda row: row.best_dev or 0.0), ", chosen on dev and reported"
    return max(rows, key=lambda row: row.average or 0.0), ""


def _against(best: StudyRow, plain: Sequence[StudyRow]) -> str:
    """How a training compares with its untrained retriever, and what scores higher without a training."""
    score = best.average or 0.0
    text = ""

    for row in plain:
        if row.condition == Condition(best.condition.retriever):
            text += f", {signed(score - (row.average or 0.0))} against the untrained one"

    above = max(plain, key=lambda row: row.average or 0.0, default=None)
    if above is not None and (above.average or 0.0) > score:
        text += f"; {above.name} has {above.average:.2f} without a training"

    return text


def _compared(comparison: str, group: Sequence[Gain]) -> str:
    """One comparison in a sentence: how many gain and lose, and the values at its highest Q/Doc."""
    by_per_doc: dict[int, list[Gain]] = defaultdict(list)
    for gain in sorted(group, key=lambda gain: gain.cw):
        by_per_doc[gain.condition.per_doc].append(gain)

    most = max(by_per_doc)
    listed = ", ".join(map(_figures, by_per_doc[most]))

    who = group[0].way
    if len(group) == 1:
        return f"{TITLES[comparison]} ({who}), Q/Doc {most}: {listed}."

    signs = Counter(float(np.sign(gain.points)) for gain in group if gain.significant)
    return (
        f"{TITLES[comparison]} ({who}): of {counted(len(group), 'difference')} {signs[1]} gain and {signs[-1]} lose "
        f"significantly. At Q/Doc {most}: {listed}."
    )


def _figures(gain: Gain) -> str:
    """``+1.25* (95% +0.50 to +2.00) on scifact (CW 8.6)``."""
    star = "*" if gain.significant else ""
    interval = f"(95% {signed(gain.low)} to {signed(gain.high)})"
    return f"{signed(gain.points)}{star} {interval} on {gain.benchmark} (CW {gain.cw:.1f})"


def missing(report: StudyReport) -> Iterator[str]:
    """What was planned and is not there, in sentences."""
    n = report.planned - report.finished
    if n:
        what = f"{n} of {counted(report.planned, 'training')} are missing"
        if report.failed:
            what += f", {report.failed} of them because they failed"

        yield f"{what}: comparisons with them are left out, and means are over the seeds that are there."

    for condition, reason in report.failures:
        yield f"Failed: {condition}. {reason}"


def _limits(report: StudyReport) -> Iterator[str]:
    still = [row for row in report.rows if row.n_seeds > 1 and not row.spread]
    if still:
        yield _without_spread(still)

    yield from limits_of_design(report.config, report.sources)

    if not report.of(TRAINING) and report.rows:
        yield "The untrained retriever was not evaluated, so gains from training are unknown."


def _without_spread(rows: Sequence[StudyRow]) -> str:
    """Why all seeds of these trainings gave the same scores."""
    names = some([row.name for row in rows], 3)
    why = "the seed's choices did not change the result"
    if all(row.steps_per_epoch == 1 for row in rows):
        why = "each step saw all pairs in one batch, so the seed only changes their order"

    return (
        f"No spread over the seeds of {names}: {why}. These are repetitions of one "
        "training, not a spread of 0; a smaller batch gives one."
    )


def _counted_singly(benchmarks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say where the clusters of queries are not known: an earlier study without them, whose benchmark has changed."""
    names = [facts["name"] for facts in benchmarks if "units_of" not in facts]
    if not names:
        return

    what = "Queries count one by one"
    if len(names) < len(benchmarks):
        what += f" on {', '.join(names)}"

    yield f"{what}: which of them share a document was not written down. Where some do, intervals are too short."


def build(
    study_id: str,
    name: str,
    state: str,
    about: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    leaks: Sequence[str] = (),
    stated: Mapping[tuple[Any, ...], ArmDifference] = {},
) -> StudyReport:
    """The report of a study from ``results/about.json`` (``about``) and the records of its conditions.

    ``stated`` are the differences that Decide states, as of ``advice.stated``.
    """
    config, sources = plan_of(about)
    read = read_study(study_id, about, records)
    about_of = _named(about["benchmarks"])

    failures: list[tuple[str, str]] = []
    finished = reused = 0
    for record in latest(records):
        if failure := record.get("failure"):
            failures.append((str(record["failed"]), str(failure["message"])))
        elif record["condition"] is not None:
            finished += 1
            reused += bool(record.get("reused_from"))

    report = StudyReport(
        id=study_id,
        name=name,
        state=state,
        config=config,
        sources=tuple(sources),
        benchmarks=tuple(read.benchmarks),
        rows=tuple(read.rows),
        gains=tuple(_as_stated(gain, read, about_of[gain.benchmark], stated) for gain in read.gains),
        planned=len(conditions(config, sources)),
        finished=finished,
        reused=reused,
        failures=tuple(failures),
        pooled=tuple(pool(read)),
        leaks=tuple(leaks),
    )

    findings = tuple(_findings(report))
    limits = (*leaks, *missing(report), *_limits(report), *_counted_singly(about["benchmarks"]))

    return replace(report, findings=findings, limits=limits)


def _as_stated(
    gain: Gain,
    read: StudyScores,
    benchmark: Mapping[str, Any],
    stated: Mapping[tuple[Any, ...], ArmDifference],
) -> Gain:
    """The gain with the figures of the answer, where that states the same difference."""
    control = dict(controls(gain.condition, read.scores)).get(gain.comparison)
    c = stated.get((benchmark["name"], benchmark["split"], gain.condition, control))
    if c is None:
        return gain
    return replace(gain, points=c.points, low=c.low, high=c.high, stated=True)


_BENCHMARK = fields(
    {"name": str, "split": str, "place": str, "n_queries": Count, "n_documents": Count, "cw": Real,
     "cw_interval": Annotated[list[Real], Field(min_length=2, max_length=2)]},
    language=str, family=str, in_domain=bool, in_domain_of=list[str], facts_of=dict[str, dict[str, Real | None]],
    source=dict[str, Any], hash=str | None, units_of=dict[str, int],
)  # fmt: skip
_SOURCE = fields(
    {"label": str, "kind": str}, query_set=str, job_id=str, n_documents=Count, counts=list[Count], reasoning=str,
    language=str, corpus=str, written_by=str,
)  # fmt: skip
# What a study's worker says of it: ``results/about.json``.
_ABOUT = fields(
    {"config": dict[str, Any], "sources": Annotated[list[_SOURCE], Field(min_length=1)],  # type: ignore[valid-type]
     "benchmarks": Annotated[list[_BENCHMARK], Field(min_length=1)]},  # type: ignore[valid-type]
    corpora=list[fields({"source": str, "query_set_hash": str})],  # type: ignore[misc]
)  # fmt: skip


def read_about(job_folder: Path) -> dict[str, Any] | None:
    """Return the study as its worker described it; None where the file is missing or damaged."""
    return whole(_ABOUT, about_file(job_folder))


def about_file(job_folder: Path) -> Path:
    """Return the path of the file in which a study's worker describes the study."""
    return job_folder / "results" / "about.json"


def plan_of(about: Mapping[str, Any]) -> tuple[StudyConfig, list[StudySource]]:
    """The plan and the sources of a study, from ``results/about.json``."""
    return stored(about["config"]), list(map(StudySource.of, about["sources"]))


def read_study(study_id: str, about: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> StudyScores:
    """The scores, rows and gains of a study, with the facts of its benchmarks: what its report is made of."""
    config, sources = plan_of(about)
    named = _named(about["benchmarks"])
    benchmarks = tuple(_facts(b, name) for name, b in named.items())
    place_of = {b["place"]: name for name, b in named.items()}

    # The cluster of each query in the order of their ids, as the study's worker wrote it down.
    units: dict[str, list[int]] = {}
    for name, b in named.items():
        if of_query := b.get("units_of"):
            units[name] = [of_query[query] for query in sorted(of_query)]

    scores, behind = read_scores(latest(records), place_of)
    ordered = {condition: scores[condition] for condition in _order(config, sources) if condition in scores}

    return StudyScores(
        study=study_id,
        gains=gains(ordered, {b.name: b.cw for b in benchmarks}, units),
        benchmarks=benchmarks,
        rows=[
            _row(condition, by_benchmark, behind[condition], benchmarks) for condition, by_benchmark in ordered.items()
        ],
        scores=ordered,
        corpus_of={source.label: source.corpus for source in sources},
        design=EQUAL_DOCUMENTS if config.held_equal == BOTH else config.held_equal,
    )


def _facts(about: Mapping[str, Any], name: str) -> BenchmarkFacts:
    """A benchmark as the study's worker described it, under its ``name`` in the report."""
    facts: dict[str, float] = {}
    for fact in COVARIATES:
        known = []
        for of_query in about.get("facts_of", {}).values():
            if of_query.get(fact) is not None:
                known.append(of_query[fact])

        if known:
            facts[fact] = float(np.mean(known))

    plain = ("split", "n_queries", "n_documents", "cw", "language", "family", "in_domain")
    return BenchmarkFacts(
        name=name,
        **{field: about[field] for field in plain if field in about},
        cw_interval=tuple(about["cw_interval"]),
        in_domain_of=tuple(about.get("in_domain_of", ())),
        facts=facts,
    )


def latest(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the newest finished record of each condition: a resumed study may hold earlier ways of scoring."""
    newest: dict[str, Mapping[str, Any]] = {}
    for number, record in enumerate(sorted(records, key=lambda record: str(record.get("created", "")))):
        if record.get("failure"):
            newest[f"failure {number}"] = record
            continue

        # A hybrid is of its retriever, and no condition either: it would replace the untrained one.
        condition = sorted((record["condition"] or {}).items())
        newest[f"{record['retriever']} {condition} {record.get('hybrid', False)}"] = record

    return list(newest.values())


def _named(benchmarks: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """{name: benchmark}; the name is with the split where two have the same."""
    times = Counter(map(itemgetter("name"), benchmarks))
    named = {}
    for b in benchmarks:
        name = b["name"] if times[b["name"]] == 1 else f"{b['name']} {b['split']}"
        named[name] = b

    return named


def _order(config: StudyConfig, sources: Sequence[StudySource]) -> list[Condition]:
    """Every condition as the report shows it: by retriever, each followed by its fusion."""
    names = [*dict.fromkeys((bm25.NAME, *config.retrievers, *config.untrained))]
    trained = [planned.condition for planned in conditions(config, sources)]

    ordered: list[Condition] = []
    for condition in (*untrained(config), *dict.fromkeys(trained)):
        ordered += [condition._replace(fused=False), condition._replace(fused=True)]

    return sorted(ordered, key=lambda condition: names.index(condition.retriever))


def _row(
    condition: Condition,
    by_benchmark: Mapping[str, BySeed],
    records: Sequence[Mapping[str, Any]],
    benchmarks: Sequence[BenchmarkFacts],
) -> StudyRow:
    means: dict[str, float] = {}
    spread: dict[str, float] = {}
    n_seeds = 0
    for b in benchmarks:
        if b.name not in by_benchmark:
            continue

        of_seeds = [float(values.mean()) for values in by_benchmark[b.name].values()]
        n_seeds = max(n_seeds, len(of_seeds))
        means[b.name] = float(np.mean(of_seeds))
        if deviation := seed_spread(of_seeds):
            spread[b.name] = deviation

    out, within = domains(benchmarks)
    trainings = [record["training"] for record in records if record.get("training")]

    return StudyRow(
        condition=condition,
        n_seeds=n_seeds,
        scores=means,
        spread=spread,
        average=_mean_over(means, out or within),
        average_in_domain=_mean_over(means, within) if out else None,
        **_sizes(trainings),
        dev=_dev_curve(trainings),
    )


def _mean_over(means: Mapping[str, float], names: Sequence[str]) -> float | None:
    """The mean over these benchmarks; None unless each of them has a score."""
    if not names or not means.keys() >= set(names):
        return None
    return float(np.mean([means[name] for name in names]))


def _sizes(trainings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What one of the trainings took; 0 where it was not written down, or nothing was trained."""
    names = ("pairs", "documents", "steps", "steps_per_epoch")
    if not trainings:
        return {**dict.fromkeys(names, 0), "seconds": 0.0}

    sizes = {name: int(trainings[0].get(name, 0)) for name in names}
    return {**sizes, "seconds": float(np.mean([training["seconds"] for training in trainings]))}


def _dev_curve(trainings: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, float], ...]:
    """(step, mean NDCG@10 on dev) of the steps that every seed was evaluated at."""
    by_step: dict[int, list[float]] = defaultdict(list)
    for training in trainings:
        # Of two evaluations at one step, as after a resume, the later counts.
        at_step: dict[int, float] = {}
        for evaluation in training.get("evaluations", ()):
            at_step[int(evaluation["step"])] = float(evaluation["ndcg@10"])

        for step, score in at_step.items():
            by_step[step].append(score)

    curve = []
    for step, scores in sorted(by_step.items()):
        if len(scores) == len(trainings):
            curve.append((step, float(np.mean(scores))))

    return tuple(curve)


def domains(benchmarks: Sequence[BenchmarkFacts]) -> tuple[list[str], list[str]]:
    """The names of the benchmarks that are out of domain for all training documents, and of the others."""
    out: list[str] = []
    within: list[str] = []
    for b in benchmarks:
        if b.in_domain or b.in_domain_of:
            within.append(b.name)
        else:
            out.append(b.name)

    return out, within


def pool(study: StudyScores) -> list[Pooled]:
    """The mean gain of each comparison, out of domain first, and its slope on content words."""
    models: list[Pooled] = []
    for title, observations in observations_of(study).items():
        families: set[str] = set()
        with_length: set[str] = set()
        for o in observations:
            families.add(o.family)
            if "words" in o.covariates:
                with_length.add(o.family)

        models.append(over_datasets(title, observations))
        if len(families) >= FAMILIES_PER_COVARIATE:
            models.append(over_datasets(f"{title}{BY_CW}", observations, ["cw"]))

        # Is it content words or length? The slope of one beside the other, where there are datasets enough for both.
        if len(with_length) >= 2 * FAMILIES_PER_COVARIATE:
            models.append(over_datasets(f"{title}{BY_CW} and length", observations, ["cw", "words"]))

    return models


def observations_of(study: StudyScores) -> dict[str, list[Observation]]:
    """{comparison, what tells it apart, and domain, in words: its gains as observations}, in the report's order."""
    groups: dict[tuple[str, str, str], list[Observation]] = defaultdict(list)
    benchmarks = {b.name: b for b in study.benchmarks}
    methods = {g.condition.method for g in study.gains if g.comparison == SCALING} - {PARAPHRASED}

    for g in study.gains:
        if not _pooled(g):
            continue

        condition, facts = g.condition, benchmarks[g.benchmark]
        own = {WEIGHTING: condition.weighting, WEIGHED: condition.weighting, REASONED: condition.query_source}
        label = f", {own.get(g.comparison, condition.held or study.design)}"
        if condition.loss != INFONCE:
            label += f", {condition.loss}"

        labels = [label]
        if g.comparison == SCALING and len(methods) > 1:
            labels.append(f"{label}, {condition.method} queries")

        domain = OUT
        if facts.in_domain or condition.source in facts.in_domain_of:
            domain = IN

        observation = _observation(study, g, facts)
        for label in labels:
            groups[g.comparison, label, domain].append(observation)

    order = (*PRINCIPLE, TRAINING)
    keys = sorted(groups, key=lambda key: (order.index(key[0]), key[2] == IN, key[1]))
    return {f"{TITLES[comparison]}{label}, {domain}": groups[comparison, label, domain]
            for comparison, label, domain in keys}  # fmt: skip


def _pooled(gain: Gain) -> bool:
    """Whether a gain is an observation of its comparison: it differs from the usual training in that alone."""
    condition, comparison = gain.condition, gain.comparison

    # What training gains or loses is a question of the loss; the kind of queries does not matter.
    if condition.method == PARAPHRASED and comparison not in (TRAINING, LOSS):
        return False
    if condition.weighting != UNWEIGHTED and comparison not in (WEIGHTING, WEIGHED, CW_BESIDE_RI):
        return False

    return condition.query_source == QUERY_ONLY or comparison == REASONED


def _observation(study: StudyScores, gain: Gain, facts: BenchmarkFacts) -> Observation:
    # 1.96 standard errors to each side of the interval.
    variance = ((gain.high - gain.low) / (2 * 1.96)) ** 2
    return Observation(
        study=study.study,
        family=facts.family or facts.name,
        benchmark=gain.benchmark,
        points=gain.points,
        variance=max(1e-6, variance),
        by_seed=gain.by_seed,
        covariates={**facts.facts, "cw": facts.cw},
        corpus=study.corpus_of.get(gain.condition.source, ""),
    )
