"""Studies: the paper's experiment on one's own data, planned, run as one job, reported."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cdp import catalog, jobs, query_sets
from cdp.base.config import FilterConfig, TrainingConfig
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.benchmarks import choose_split, describe, load_benchmark, resolve_benchmark
from cdp.complexity import count_content_words
from cdp.corpus import resolve_corpus
from cdp.jobs import JobView
from cdp.retrievers import resolve
from cdp.services import completeness, queries
from cdp.services.jobs import devices
from cdp.services.jobs import in_use as jobs_in_use
from cdp.services.queries import filtering
from cdp.services.sharing import access
from cdp.services.studies import planned_sources, study_reuse
from cdp.services.training import leakage
from cdp.studies import ReadyMade, StudyConfig, StudyReport, StudySource, read_plan, ready_made, records, to_markdown
from cdp.studies import build as build_report
from cdp.studies.estimate import Speed, StudyPlan, estimate, measured_speeds
from cdp.studies.gains import SCALING, TITLES, Gain
from cdp.studies.plan import FILTERED_BY, benchmark_names, dev_name, method_of, problems_of_budget, with_kappa
from cdp.studies.text import beside, minutes, plan_text, progress_text, threshold_rows
from cdp.training.plan import complete
from cdp.training.weightings import WEIGHTINGS

__all__ = [
    "SCALING",
    "TITLES",
    "Gain",
    "ReadyMade",
    "StudyConfig",
    "StudyPlan",
    "StudyReport",
    "StudyStart",
    "beside",
    "list_studies",
    "minutes",
    "plan",
    "plan_text",
    "progress_text",
    "read_plan",
    "ready_made",
    "report",
    "run",
    "speeds",
    "threshold_rows",
    "to_markdown",
    "to_yaml",
    "weightings",
]

WORKER = "cdp.workers.study"

"""What a study reads of all others while they run, so that none trains what another has."""


@dataclass(frozen=True)
class StudyStart:
    """What was submitted: the study, and the jobs that write its missing queries first."""

    job_id: str
    generations: list[str] = field(default_factory=list)


@access.reads
def plan(workspace: Workspace, config: StudyConfig, *, known: Sequence[Mapping[str, Any]] | None = None) -> StudyPlan:
    """What a study would run, cost and take. Everything that can be wrong is found here; nothing is started.

    ``known`` are the facts of its benchmarks where they are not in the workspace yet.
    """
    sources, missing = planned_sources.sources(workspace, config)
    benchmarks = known or [_benchmark(workspace, config, name, split) for name, split in benchmark_names(config)]
    benchmark_splits = [(b["name"], b["split"]) for b in benchmarks]
    if len(set(benchmark_splits)) < len(benchmark_splits):
        raise ConfigError("A benchmark is named twice.", hint="Name each benchmark and split once.")
    dev = _dev_place(workspace, config, benchmark_splits) if config.dev else ""
    for weighting in config.items("weightings"):
        if with_kappa(weighting)[0] not in weightings():
            raise NotFoundError("weighting", weighting, known=list(weightings()))
    retrievers = {name: resolve(access.model(workspace, name), workspace) for name in config.items("retrievers")}
    for source in sources:
        problem = problems_of_budget(config, source)
        if problem:
            raise ConfigError(problem, hint="Lower the budget, leave out the highest Q/Doc, or use equal documents.")
    whole = {
        name: complete(TrainingConfig.from_dict({"query_set": "any", **_given(config)}), retriever)
        for name, retriever in retrievers.items()
    }
    study_plan = estimate(
        config,
        sources,
        benchmarks,
        epochs={name: settings.epochs or 1 for name, settings in whole.items()},
        batch_sizes={name: settings.batch_size or 1 for name, settings in whole.items()},
        speeds=speeds(workspace),
        generations=missing,
        reused=study_reuse.reused(
            workspace,
            config,
            sources,
            retrievers,
            [b["place"] for b in benchmarks],
            dev,
            [b["language"] for b in benchmarks],
        ),
    )
    lacking = completeness.list_incomplete(workspace, config.items("query_sets"))
    notes = [item.note for item in lacking]
    notes += [text for source in sources if (text := _of_first_documents(workspace, source))]
    if not known:
        written = [source for source in sources if _written(config, source)]
        notes += [left_out(leak) for leak in leaks_of(workspace, config, _sets(written))]
    return dataclasses.replace(study_plan, notes=(*notes, *study_plan.notes))


def _of_first_documents(workspace: Workspace, source: StudySource) -> str:
    """What has to be said of a set that was written for the first documents of its corpus alone; empty of others."""
    if not source.query_set:
        return ""
    query_set = query_sets.load(workspace, source.query_set)
    limit = query_set.parameters.get("limit")
    if query_set.parameters.get("draw") is not None or not isinstance(limit, int):
        return ""
    if limit >= resolve_corpus(workspace, query_set.corpus_id).n_documents:
        return ""
    return (
        f"{query_set.name} has queries for the first {limit:,} documents of its corpus alone: what holds for them may "
        "not hold for the others."
    )


def _written(config: StudyConfig, source: StudySource) -> bool:
    """Whether a source is what a method writes, for this study or before, and no set that the plan names."""
    return method_of(source.label) in config.items("methods")


def _sets(sources: Sequence[StudySource]) -> list[str]:
    return [name for source in sources if (name := source.query_set or source.made_from)]


def left_out(leak: leakage.Leak) -> str:
    """Of queries that a method wrote, those that a benchmark judges are not trained on: how many, in a sentence."""
    reworded = f" ({leak.near:,} of them reworded)" if leak.near else ""
    return (
        f"{leak.source}: queries that {leak.benchmark} {leak.split} judges too, {leak.queries:,} of its "
        f"{leak.judged:,}{reworded}, are left out of the training."
    )


def _dev_place(workspace: Workspace, config: StudyConfig, benchmark_splits: Sequence[tuple[str, str]]) -> str:
    """The place of the dev benchmark; ConfigError for one that is also reported on: its scores would be selected."""
    name, split = dev_name(config)
    info = describe(resolve_benchmark(access.benchmark(workspace, name), workspace), workspace)
    chosen = choose_split(info, split)
    if (info.name, chosen) in benchmark_splits:
        raise ConfigError(
            f"{config.dev} cannot both choose the checkpoints and be reported on: its scores would be too high.",
            hint="Name another split or benchmark as 'dev'.",
        )
    return records.evaluation_key(info.content_hash, chosen, "paper")


def _given(config: StudyConfig) -> dict[str, Any]:
    """The training settings that the plan fixes."""
    names = ("epochs", "batch_size", "learning_rate", "max_length")
    return {name: getattr(config, name) for name in names if getattr(config, name) is not None}


@access.runs
def run(
    workspace: Workspace,
    config: StudyConfig,
    *,
    api_key: str = "",
    allow_incomplete: bool = False,
    allow_leakage: bool = False,
) -> StudyStart:
    """Submit a study as one job, after the jobs that write the queries it lacks.

    ConfigError for a query set that is not whole, unless ``allow_incomplete``, or a named one with queries that a
    benchmark judges, unless ``allow_leakage``; of what methods wrote, such queries are left out, unless it is.
    """
    plan(workspace, config)
    completeness.require(workspace, config.items("query_sets"), allow_incomplete)
    sources, _ = planned_sources.sources(workspace, config)
    leakage.require(leaks_of(workspace, config), allow_leakage)
    leaks = leaks_of(workspace, config, _sets(sources)) if allow_leakage else []
    generations = []
    written: dict[str, str] = {}
    ready = []
    for source in sources:
        if source.query_set:
            ready.append(source)
            continue
        whole, _, _ = source.label.partition(FILTERED_BY)
        if not source.made_from and whole not in written:
            written[whole] = queries.generate(workspace, planned_sources.synthesis_of(config, source), api_key=api_key)
            generations.append(written[whole])
        if not source.filter:
            ready.append(dataclasses.replace(source, job_id=written[whole]))
            continue
        made_from = source.made_from or jobs_in_use.set_of(workspace, written[whole])
        after = [] if source.made_from else [written[whole]]
        job_id = filtering.start_filter(workspace, FilterConfig.from_text(made_from, source.filter), after=after)
        generations.append(job_id)
        ready.append(dataclasses.replace(source, job_id=job_id, made_from=made_from))
    job_id = jobs.submit(
        workspace,
        kind="study",
        name=config.name or "study",
        module=WORKER,
        config=config.to_dict(),
        device=devices.request(workspace, config.gpus, at_most=1),
        spreads=True,
        inputs={"sources": [dataclasses.asdict(source) for source in ready], **leakage.links(leaks)},
        after=generations,
    )
    return StudyStart(job_id, generations)


@access.reads
def leaks_of(workspace: Workspace, config: StudyConfig, sets: Sequence[str] | None = None) -> list[leakage.Leak]:
    """The judged queries among those of ``sets``; without these, of the query sets that the plan names."""
    names = config.items("query_sets") if sets is None else sets
    benchmark_splits = benchmark_names(config) + ([dev_name(config)] if config.dev else [])
    return leakage.find_leaks(workspace, names, benchmark_splits)


def list_studies(workspace: Workspace) -> list[JobView]:
    """The studies of this workspace, newest first."""
    return jobs.list_jobs(workspace, ["study"])


def report(workspace: Workspace, study: str) -> StudyReport:
    """What a study has found so far, by its id, the beginning of its id, or its name."""
    view = _study(workspace, study)
    about = _about(view)
    study_report = build_report(view.id, view.name, str(view.state), about, list(records.list_records(view.folder)))
    leaks = [leakage.Leak(**leak).sentence for leak in view.inputs.get(leakage.LEAKAGE, ())]
    return dataclasses.replace(study_report, limits=(*(f"Leaked: {leak}" for leak in leaks), *study_report.limits))


def _study(workspace: Workspace, name: str) -> JobView:
    view = jobs.view(workspace, jobs.resolve_job(workspace, name), with_size=False)
    if view.kind != "study":
        raise ConfigError(f"The job {view.id} is of kind {view.kind}.", hint="Name a study: see study list.")
    return view


def _about(view: JobView) -> dict[str, Any]:
    about = read_json_or_none(view.folder / "results" / "about.json")
    if not isinstance(about, dict):
        why = view.failure["message"] if view.failure else f"it is {view.state}"
        raise InputError(f"The study {view.id} has nothing to report yet: {why}.")
    return about


def weightings() -> dict[str, str]:
    """The weightings that can be compared, each with its title: those that need no file of one's own."""
    return {name: weighting.title for name, weighting in WEIGHTINGS.items() if weighting.needs != "column"}


def to_yaml(config: StudyConfig) -> str:
    """The plan as a file that ``study run`` reads."""
    import yaml

    values = {name: value for name, value in config.to_dict().items() if value not in (None, "")}
    return yaml.safe_dump(values, allow_unicode=True, sort_keys=False)


def _benchmark(workspace: Workspace, config: StudyConfig, name: str, split: str) -> dict[str, Any]:
    folder = resolve_benchmark(access.benchmark(workspace, name), workspace)
    info = describe(folder, workspace)
    chosen = choose_split(info, split)
    loaded = load_benchmark(folder, chosen)
    language = config.language or loaded.counted_language
    cw = count_content_words(loaded.queries, language)
    return {
        "name": info.name,
        "split": chosen,
        "place": records.evaluation_key(loaded.hash, chosen, config.protocol),
        "n_queries": loaded.n_queries,
        "n_documents": loaded.n_documents,
        "language": language,
        "cw": float(cw.mean()),
        "empty": float((cw == 0).mean()),
    }


def speeds(workspace: Workspace) -> dict[str, Speed]:
    """How fast each retriever was here, from its newest training and evaluation, or the newest study."""
    pairs: dict[str, float] = {}
    texts: dict[str, float] = {}
    for row in catalog.trainings(workspace):
        rate = row["result"].get("pairs_per_second")
        if rate:
            pairs.setdefault(row["retriever"], float(rate))
    for row in catalog.evaluations(workspace):
        if row["seconds"] and not row["counts"].get("embeddings_reused"):
            texts.setdefault(row["retriever_id"], (row["n_queries"] + row["n_documents"]) / row["seconds"])
    for view in list_studies(workspace):
        for name, speed in measured_speeds(records.list_records(view.folder)).items():
            pairs.setdefault(name, speed.pairs_per_second)
            texts.setdefault(name, speed.texts_per_second)
    return {name: Speed(pairs[name], texts[name]) for name in pairs if name in texts}
