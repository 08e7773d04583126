"""Training a retriever, with its evaluation before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import catalog, jobs, query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace
from cdp.query_sets import QuerySet
from cdp.retrievers import PRESETS, Default, bm25, resolve
from cdp.retrievers.preset import PAPER_EPOCHS
from cdp.services import access, clusters, completeness, evaluation, leakage, naming, results
from cdp.studies.estimate import DEFAULT_SPEEDS, STARTING_S
from cdp.training.pairs import check_teacher
from cdp.training.plan import complete, defaults_for, licence_notes, order_notes, order_of
from cdp.training.reasoning import Reasoned, check_corpus, check_reasoned, pairs_with, unreasoned_note, uses_reasoned
from cdp.training.weightings import WEIGHTINGS
from cdp.training.weightings.column import read_weights

WORKER = "cdp.workers.training"


@dataclass(frozen=True)
class RetrieverChoice:
    """Something that can be trained or evaluated: a preset, or what a training job made."""

    id: str
    title: str
    kind: str
    note: str = ""


@dataclass(frozen=True)
class TrainingPlan:
    """The size of a training, its settings with every default filled in, the licences that apply, and notes.

    ``seconds`` come from the last training of this retriever here, else from its shipped speed; None without either.
    """

    pairs: int
    documents: int
    steps: int
    query_set: QuerySet
    settings: TrainingConfig
    licences: dict[str, str]
    seconds: float | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TrainingStart:
    """The submitted training and its evaluations. ``known`` are existing results that were reused."""

    job_id: str
    evaluations: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)


def list_retrievers(workspace: Workspace) -> list[RetrieverChoice]:
    """Return the presets, then the trained retrievers, newest first."""
    presets = [RetrieverChoice(p.name, p.title, "preset", p.help) for p in PRESETS.values()]
    trained = [
        RetrieverChoice(view.id, view.name, "job", f"trained from {view.config.get('retriever', '')}")
        for view in jobs.list_jobs(workspace, ["training"])
        if view.has_model
    ]
    return presets + trained


def defaults(workspace: Workspace, retriever: str, lora: bool = False) -> dict[str, Default]:
    """Return the retriever's values for empty settings, each with its reason."""
    preset = PRESETS.get(retriever)  # known, wherever its weights are
    return defaults_for(
        preset.defaults if preset else resolve(access.model(workspace, retriever), workspace).defaults, lora
    )


def in_order(sets: Sequence[QuerySet], corpus: str = "") -> list[QuerySet]:
    """Sort query sets (newest first) by how likely they are trained on: this corpus (or the newest set's) first, an
    LLM's or people's before a template's, reasoned forms last, diverse before others."""
    at = corpus if any(q.corpus_id == corpus for q in sets) else sets[0].corpus_id if sets else ""
    return sorted(
        sets,
        key=lambda q: (q.corpus_id != at, q.method == "reasoning", q.generator == "template", q.method != "diverse"),
    )


def reasoned_sets(workspace: Workspace, query_set: str) -> list[QuerySet]:
    """Return the corpus's query sets that may hold reasoned forms of this one's queries: those of the method reasoning
    first, then imported ones."""
    all_sets = query_sets.list_query_sets(workspace)
    corpus = next((q.corpus_id for q in all_sets if q.id == query_set), "")
    others = [q for q in all_sets if q.id != query_set and q.corpus_id == corpus]
    fitting = [q for q in others if q.method == "reasoning" or q.generator == "import"]
    return sorted(
        fitting, key=lambda q: (q.method != "reasoning", q.parameters.get("source") not in ("", None, query_set))
    )


def query_counts(workspace: Workspace, query_set: str) -> NDArray[np.int64]:
    """Return the number of queries of each document with queries, in the set's order, shape (n_documents,). Cached."""

    def compute() -> NDArray[np.int64]:
        lines = query_sets.iter_lines(workspace, query_set)
        counts = np.fromiter((sum(map(bool, map(str.strip, line["queries"]))) for line in lines), dtype=np.int64)
        return counts[counts > 0]

    return ANSWERS.get(query_sets.files(workspace, query_set).queries, "query counts", compute)


def _counted(workspace: Workspace, query_set: str, config: TrainingConfig) -> tuple[int, int]:
    """Return (pairs, documents) of a set's first ``per_doc`` queries."""
    counts = query_counts(workspace, query_set)
    return int((counts if config.per_doc is None else np.minimum(counts, config.per_doc)).sum()), len(counts)


def _drawn(config: TrainingConfig, pairs: int, documents: int) -> tuple[int, int]:
    """Return (pairs, documents) of a training on a random draw; exact where all documents have as many queries."""
    share = min(1.0, (config.max_documents or documents) / max(1, documents))
    if config.pairs is not None:
        share = min(share, config.pairs / max(1, pairs))
    return round(pairs * share), max(1, round(documents * share))


@access.reads
def named(workspace: Workspace, config: TrainingConfig) -> tuple[TrainingConfig, QuerySet]:
    """Return ``config`` with the ids of its query sets, and the set to train on.

    Also checks that reasoned queries are for the same corpus and that a file of weights is readable; whether every
    query has its weight is checked when the pairs are read.
    """
    query_set = completeness.check(workspace, query_sets.resolve_query_set(workspace, config.query_set)).query_set
    needs = WEIGHTINGS.named(config.weighting).needs
    reasoning = config.reasoning
    if uses_reasoned(config) and reasoning:
        reasoned = query_sets.resolve_query_set(workspace, reasoning)
        check_corpus(reasoned.id, reasoned.corpus_id, query_set.corpus_id)
        reasoning = reasoned.id
    if needs == "column" and config.weights:
        ANSWERS.get(access.to_read(workspace, config.weights), "weights", lambda: read_weights(config.weights, ()))
    with_ids = config.replace(query_set=query_set.id, reasoning=reasoning)
    check_reasoned(with_ids, query_set.method)
    return with_ids, query_set


@access.reads
def plan(workspace: Workspace, config: TrainingConfig) -> TrainingPlan:
    """Return the plan of a training. Starts nothing and reads no model and no document."""
    if naming.is_reserved(config.name):
        raise ConfigError(f"{config.name!r} is the name of a retriever already.", hint="Give the training another one.")
    retriever = resolve(config.retriever, workspace)
    with_ids, query_set = named(workspace, config)
    settings = complete(with_ids, retriever)
    if settings.loop.distil:
        check_teacher(query_set)
    if query_set.complete and config.per_doc is None:
        pairs, documents = query_set.n_queries, query_set.n_documents
    else:
        pairs, documents = _counted(workspace, query_set.id, config)
    unreasoned = 0
    if uses_reasoned(settings):
        lines = query_sets.read_queries(workspace, query_set.id)
        forms = Reasoned(workspace, settings.reasoning)
        pairs, documents, unreasoned = pairs_with(forms, lines, settings)
    there = documents
    pairs, documents = _drawn(config, pairs, documents)
    if not pairs:
        raise InputError(f"The query set {query_set.name} has no queries to train on.", hint="Generate or import some.")
    if documents < 2:
        raise InputError(
            f"These queries are for one document only ({query_set.name}), so none has a negative to learn from.",
            hint="Training needs queries for at least two different documents.",
        )
    order = order_of(settings, pairs)
    notes = order_notes(order)
    if unreasoned:
        notes.append(unreasoned_note(unreasoned, settings))
    if config.max_documents is not None and there < config.max_documents:
        notes.append(f"The set has {there:,} documents with queries, fewer than the {config.max_documents:,} asked.")
    if settings.dev.benchmark:
        evaluation.checked(workspace, retriever.name, settings.dev.benchmark, settings.dev.split)
    elif settings.loop.epochs == PAPER_EPOCHS.value:
        notes.append("So many epochs are meant to end at the best of them: set a dev benchmark to keep it.")
    licences = licence_notes(retriever, query_set, workspace)
    seconds = _seconds(workspace, retriever.name, order.steps * order.global_rows)
    return TrainingPlan(pairs, documents, order.steps, query_set, settings, licences, seconds, notes)


def _seconds(workspace: Workspace, retriever: str, pairs: int) -> float | None:
    """Return the seconds of a training on so many pairs, without evaluations; None if unknown."""
    trainings = (row for row in catalog.trainings(workspace) if row["retriever"] == retriever)
    rates = (row["result"].get("pairs_per_second") for row in trainings)
    shipped = DEFAULT_SPEEDS[retriever].pairs_per_second if retriever in DEFAULT_SPEEDS else None
    rate = next((rate for rate in rates if rate), shipped)
    return STARTING_S + pairs / float(rate) if rate else None


def trained_on(config: TrainingConfig) -> list[str]:
    """Return the query sets that a training reads."""
    return [config.query_set, *([config.reasoning] if config.reasoning and uses_reasoned(config) else [])]


@access.reads
def label(workspace: Workspace, config: TrainingConfig) -> str:
    """Return the name of an unnamed training: its Q/Doc and pairs, corpus, retriever, and any seed but the first."""
    query_set = query_sets.resolve_query_set(workspace, config.query_set)
    pairs, documents = _drawn(config, *_counted(workspace, query_set.id, config))
    source, corpus = results.source(workspace, query_set.id)
    trained = results.Trained(source, corpus, results.per_doc(pairs, documents), pairs, documents, 0, config.to_dict())
    retriever = resolve(config.retriever, workspace).name
    seed = f"seed {config.seed}" if config.seed else ""
    return results.SEPARATOR.join(filter(None, [trained.recipe, corpus, retriever, seed]))


@access.runs
def submit(workspace: Workspace, config: TrainingConfig, links: Mapping[str, Any] | None = None) -> str:
    """Submit one training that has been checked (``plan``); the job's id. ``links`` say what it belongs to."""
    with_ids, query_set = named(workspace, TrainingConfig.from_dict(config.to_dict()))
    return jobs.submit(
        workspace,
        kind="training",
        name=config.name or label(workspace, config),
        module=WORKER,
        config=with_ids.to_dict(),
        launcher="accelerate",
        device=clusters.request(workspace, config.gpus),
        inputs={
            "query_set": query_set.id,
            "query_set_hash": query_sets.content_hash(workspace, query_set),
            "corpus": query_set.corpus_id,
            **(links or {}),
        },
    )


@access.runs
def start(
    workspace: Workspace,
    config: TrainingConfig,
    *,
    benchmarks: Sequence[tuple[str, str]] = (),
    allow_incomplete: bool = False,
    allow_leakage: bool = False,
) -> TrainingStart:
    """Submit a training and, for each (benchmark, split), evaluations of the retriever before, after, and of BM25.

    Those of the untrained retriever and BM25 that are in the results already are not run again. ConfigError for a
    query set that is not whole, unless ``allow_incomplete``, and for one that holds what a benchmark judges, unless
    ``allow_leakage``: that marks the training and its results.
    """
    plan(workspace, config)
    completeness.require(workspace, trained_on(config), allow_incomplete)
    base = resolve(config.retriever, workspace)
    wanted = [evaluation.checked(workspace, base.name, benchmark, split) for benchmark, split in benchmarks]
    leaks = leakage.of_training(workspace, config, [(wish.judged.benchmark, wish.judged.split) for wish in wanted])
    leakage.require(leaks, allow_leakage)
    reused: list[str] = []
    evaluations: list[str] = []
    # BM25 stands beside every score: a retriever that does not beat it is no gain.
    for wish in (one for untrained in wanted for one in (untrained, untrained.replace(retriever=bm25.NAME))):
        there = evaluation.existing(workspace, wish)
        if there:
            reused.append(there)
        else:
            evaluations.append(evaluation.start(workspace, wish))
    job_id = submit(workspace, config, leakage.links(leaks))
    evaluations += [evaluation.start_after(workspace, wish.replace(retriever=job_id), job_id) for wish in wanted]
    return TrainingStart(job_id, evaluations, reused)
