"""Studies: the paper's experiment on one's own data, planned, run as one job, reported."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cdp import catalog, jobs, query_sets
from cdp.base.config import FilterConfig, SynthesisConfig, TrainingConfig
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.benchmarks import choose_split, describe, load_benchmark, resolve_benchmark
from cdp.complexity import count_content_words
from cdp.corpus import resolve_corpus
from cdp.jobs import JobView
from cdp.query_sets import QuerySet
from cdp.retrievers import resolve
from cdp.services import completeness, queries
from cdp.services.jobs import devices
from cdp.services.jobs import in_use as jobs_in_use
from cdp.services.queries import filtering, synthesis
from cdp.services.sharing import access
from cdp.services.studies import filtered, study_reuse
from cdp.services.training import leakage
from cdp.studies import ReadyMade, StudyConfig, StudyReport, StudySource, read_plan, ready_made, records, to_markdown
from cdp.studies import build as build_report
from cdp.studies.estimate import PlannedGeneration, Speed, StudyPlan, estimate, measured_speeds
from cdp.studies.gains import SCALING, TITLES, Gain
from cdp.studies.plan import FILTERED_BY, benchmark_names, dev_name, needs_reasoning, problems_of_budget
from cdp.studies.sources import counted
from cdp.studies.text import minutes, plan_text, progress_text, threshold_rows
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.methods import get_method
from cdp.training.reasoning import check_reasoned
from cdp.training.settings import complete
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
    sources, missing = _sources(workspace, config)
    benchmarks = known or [_benchmark(workspace, config, name, split) for name, split in benchmark_names(config)]
    benchmark_splits = [(b["name"], b["split"]) for b in benchmarks]
    if len(set(benchmark_splits)) < len(benchmark_splits):
        raise ConfigError("A benchmark is named twice.", hint="Name each benchmark and split once.")
    dev = _dev_place(workspace, config, benchmark_splits) if config.dev else ""
    for weighting in config.items("weightings"):
        if weighting not in weightings():
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
        reused=study_reuse.reused(workspace, config, sources, retrievers, [b["place"] for b in benchmarks], dev),
    )
    lacking = completeness.list_incomplete(workspace, config.items("query_sets"))
    notes = tuple(item.note for item in lacking)
    return dataclasses.replace(study_plan, notes=(*notes, *study_plan.notes))


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

    ConfigError for a query set that is not whole, unless ``allow_incomplete``, or with queries that a benchmark
    judges, unless ``allow_leakage``.
    """
    plan(workspace, config)
    completeness.require(workspace, config.items("query_sets"), allow_incomplete)
    sources, _ = _sources(workspace, config)
    leaks = leaks_of(workspace, config, [source.query_set or source.made_from for source in sources])
    leakage.require(leaks, allow_leakage)
    generations = []
    written: dict[str, str] = {}
    ready = []
    for source in sources:
        if source.query_set:
            ready.append(source)
            continue
        method, _, _ = source.label.partition(FILTERED_BY)
        if not source.made_from and method not in written:
            written[method] = queries.generate(workspace, _synthesis(config, method), api_key=api_key)
            generations.append(written[method])
        if not source.filter:
            ready.append(dataclasses.replace(source, job_id=written[method]))
            continue
        made_from = source.made_from or jobs_in_use.set_of(workspace, written[method])
        after = [] if source.made_from else [written[method]]
        job_id = filtering.start_filter(workspace, FilterConfig.from_text(made_from, source.filter), after=after)
        generations.append(job_id)
        ready.append(dataclasses.replace(source, job_id=job_id, made_from=made_from))
    job_id = jobs.submit(
        workspace,
        kind="study",
        name=config.name or "study",
        module=WORKER,
        config=config.to_dict(),
        device=devices.request(config.gpus, at_most=1),
        inputs={"sources": [dataclasses.asdict(source) for source in ready], **leakage.links(leaks)},
        after=generations,
    )
    return StudyStart(job_id, generations)


@access.reads
def leaks_of(workspace: Workspace, config: StudyConfig, sets: Sequence[str] | None = None) -> list[leakage.Leak]:
    """The judged queries among those that a study trains on: of ``sets``, or of all that there is to train on now."""
    if sets is None:
        sets = [source.query_set or source.made_from for source in _sources(workspace, config)[0]]
    names = [name for name in sets if name]
    benchmark_splits = benchmark_names(config) + ([dev_name(config)] if config.dev else [])
    return leakage.find_leaks(workspace, names, benchmark_splits)


def list_studies(workspace: Workspace) -> list[JobView]:
    """The studies of this workspace, newest first."""
    return jobs.list_jobs(workspace, ["study"])


def report(workspace: Workspace, study: str) -> StudyReport:
    """What a study has found so far, by its id, the beginning of its id, or its name."""
    view = jobs.view(workspace, jobs.resolve_job(workspace, study), with_size=False)
    if view.kind != "study":
        raise ConfigError(f"The job {view.id} is of kind {view.kind}.", hint="Name a study: see study list.")
    about = read_json_or_none(view.folder / "results" / "about.json")
    if not isinstance(about, dict):
        why = view.failure["message"] if view.failure else f"it is {view.state}"
        raise InputError(f"The study {view.id} has nothing to report yet: {why}.")
    study_report = build_report(view.id, view.name, str(view.state), about, list(records.list_records(view.folder)))
    leaks = [leakage.Leak(**leak).sentence for leak in view.inputs.get(leakage.LEAKAGE, ())]
    return dataclasses.replace(study_report, limits=(*(f"Leaked: {leak}" for leak in leaks), *study_report.limits))


def weightings() -> dict[str, str]:
    """The weightings that can be compared, each with its title: those that need no file of one's own."""
    return {name: weighting.title for name, weighting in WEIGHTINGS.items() if weighting.needs != "column"}


def to_yaml(config: StudyConfig) -> str:
    """The plan as a file that ``study run`` reads."""
    import yaml

    values = {name: value for name, value in config.to_dict().items() if value not in (None, "")}
    return yaml.safe_dump(values, allow_unicode=True, sort_keys=False)


def _sources(workspace: Workspace, config: StudyConfig) -> tuple[list[StudySource], list[PlannedGeneration]]:
    """What is trained on, and what has to be written for it first."""
    whole, missing = _whole_sources(workspace, config)
    filters = config.items("filters")
    if not filters:
        return whole, missing
    if filters != [filtered.NONE] and any(map(needs_reasoning, config.items("weightings"))):
        raise ConfigError("RI compares whole sets with their reasoned forms.", hint="Leave out filters, or RI.")
    return [filtered.source_of(workspace, source, text) for source in whole for text in filters], missing


def _whole_sources(workspace: Workspace, config: StudyConfig) -> tuple[list[StudySource], list[PlannedGeneration]]:
    """The query sets and methods of the plan, before any filter."""
    sources: list[StudySource] = []
    for name in config.items("query_sets"):
        query_set = query_sets.resolve_query_set(workspace, name)
        kind = "human" if query_set.kind == "human" else query_set.method
        reasoning = _reasoning(workspace, config, query_set)
        source = counted(workspace, StudySource(_label(query_set, sources), kind, query_set.id, reasoning=reasoning))
        if not source.n_documents:
            raise InputError(f"The query set {query_set.name} has no queries to train on.")
        sources.append(source)
    missing: list[PlannedGeneration] = []
    if config.items("methods"):
        manifest = resolve_corpus(workspace, config.corpus)
        most = max(config.numbers("per_doc", minimum=1))
        n_documents = min(manifest.n_documents, _documents_needed(config) or manifest.n_documents)
        for method in config.items("methods"):
            get_method(method)
            existing_set = _existing_set(workspace, manifest.id, method, config, most)
            if existing_set is not None:
                reasoning = _reasoning(workspace, config, existing_set)
                sources.append(counted(workspace, StudySource(method, method, existing_set.id, reasoning=reasoning)))
            else:
                if any(map(needs_reasoning, config.items("weightings"))):
                    raise ConfigError(
                        "RI needs reasoned forms of queries that are there.",
                        hint="Write the queries and their reasoned forms first, and name both as query sets.",
                    )
                sources.append(StudySource(method, method, "", "", n_documents))
                missing.append(_generation(workspace, config, method))
    return sources, missing


def _reasoning(workspace: Workspace, config: StudyConfig, query_set: QuerySet) -> str:
    """The set of reasoned forms for a set to train on, where a weighting needs one; ConfigError where none fits."""
    if not any(map(needs_reasoning, config.items("weightings"))):
        return ""
    named = [query_sets.resolve_query_set(workspace, name) for name in config.items("reasoning")]
    reasoned = [q for q in named if q.parameters.get("source") == query_set.id]
    fitting = reasoned or [q for q in named if not q.parameters.get("source") and q.corpus_id == query_set.corpus_id]
    if len(fitting) != 1 or fitting[0].id == query_set.id:
        problem = "no query set" if not fitting else "the set itself" if len(fitting) == 1 else "several"
        raise ConfigError(
            f"RI needs the reasoned forms of {query_set.name}, and 'reasoning' names {problem} for it.",
            hint="Name one set for each query set: written with the method reasoning from it, or imported.",
        )
    check_reasoned(TrainingConfig(query_set=query_set.id, weighting="ri", reasoning=fitting[0].id), query_set.method)
    return fitting[0].id


def _generation(workspace: Workspace, config: StudyConfig, method: str) -> PlannedGeneration:
    """What it takes to have the queries of a method written, counted on a sample of the documents."""
    if not GENERATORS[config.generator].endpoint:
        return PlannedGeneration(method, config.generator)
    cost_estimate = synthesis.estimate(workspace, _synthesis(config, method))
    return PlannedGeneration(
        method,
        config.generator,
        cost_estimate.requests,
        cost_estimate.input_tokens,
        cost_estimate.output_tokens,
        cost_estimate.cost,
    )


def _label(query_set: QuerySet, sources: Sequence[StudySource]) -> str:
    unnamed = query_set.imported and query_set.kind != "human"  # "imported" would tell two of them from nothing
    label = "human" if query_set.kind == "human" else (not unnamed and query_set.method) or query_set.name
    used = {source.label for source in sources}
    if label not in used:
        return label
    return query_set.name if query_set.name not in used else query_set.id


def _existing_set(workspace: Workspace, corpus_id: str, method: str, config: StudyConfig, most: int) -> QuerySet | None:
    """The newest complete set of this method and generator with enough queries per document for all documents."""
    needed = _documents_needed(config)
    for query_set in query_sets.list_query_sets(workspace):
        same = (
            query_set.corpus_id == corpus_id
            and query_set.method == method
            and query_set.generator == config.generator
            and (not GENERATORS[config.generator].is_llm or query_set.model == config.model)
        )
        limit = query_set.parameters.get("limit")
        enough = query_set.per_doc >= most and (limit is None or (needed is not None and limit >= needed))
        # A copy without some of its queries says the same of method and Q/Doc: it is not what the method wrote.
        if same and enough and query_set.complete and not query_set.parameters.get("made_from"):
            return query_set
    return None


def _documents_needed(config: StudyConfig) -> int | None:
    """How many of the first documents the study looks at; None for all."""
    if config.budget is None:
        return config.max_documents
    most = max(2, config.budget // min(config.numbers("per_doc", minimum=1)))
    return most if config.max_documents is None else min(most, config.max_documents)


def _synthesis(config: StudyConfig, method: str) -> SynthesisConfig:
    return SynthesisConfig.from_dict(
        {
            "corpus": config.corpus,
            "method": method,
            "per_doc": max(config.numbers("per_doc", minimum=1)),
            "generator": config.generator,
            "model": config.model,
            "base_url": config.base_url,
            "limit": _documents_needed(config),
            "budget": config.spend / len(config.items("methods")) if config.spend else None,
        }
    )


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
