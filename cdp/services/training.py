"""Training a retriever, with its evaluation before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cdp import catalog, jobs
from cdp.config import TrainingConfig
from cdp.errors import InputError
from cdp.services import access, commands, devices, evaluation, kept
from cdp.synthesis import query_sets
from cdp.training.pairs import BatchOrder
from cdp.training.retrievers import PRESETS, Default, resolve
from cdp.training.settings import complete
from cdp.workspace import Workspace

WORKER = "cdp.training.worker"


@dataclass(frozen=True)
class RetrieverChoice:
    """Something that can be trained or evaluated: a preset, or what a training job made."""

    id: str
    title: str
    kind: str
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """What a training would do: pairs, documents, steps, the settings with every default filled in, what to know."""

    pairs: int
    documents: int
    steps: int
    settings: TrainingConfig
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Started:
    """What was submitted: the training and, around it, evaluations. ``known`` are results that were there already."""

    job_id: str
    evaluations: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)


def retrievers(workspace: Workspace) -> list[RetrieverChoice]:
    """The presets, then the trained retrievers, newest first."""
    presets = [RetrieverChoice(p.name, p.title, "preset", p.help) for p in PRESETS.values()]
    trained = [
        RetrieverChoice(view.id, view.name, "job", f"trained from {view.config.get('retriever', '')}")
        for view in jobs.list_jobs(workspace, ["training"])
        if view.has_model
    ]
    return presets + trained


def defaults(workspace: Workspace, retriever: str) -> dict[str, Default]:
    """What the settings left empty become for this retriever, each with its reason."""
    return dict(resolve(retriever, workspace).defaults)


def _pairs(workspace: Workspace, query_set: str, config: TrainingConfig) -> tuple[int, int]:
    """How many pairs a training takes from a query set, and from how many documents."""
    documents = pairs = 0
    for line in query_sets.iter_lines(workspace, query_set):
        if config.max_documents is not None and documents >= config.max_documents:
            break
        n = sum(1 for query in line["queries"][: config.per_doc] if query.strip())
        pairs += n
        documents += n > 0
    return pairs, documents


def plan(workspace: Workspace, config: TrainingConfig) -> Plan:
    """What a training would do, and with which settings. Nothing is started and no model is loaded."""
    query_set = query_sets.resolve_query_set(workspace, config.query_set)
    retriever = resolve(config.retriever, workspace)
    settings = complete(config, retriever)
    pairs, documents = kept.of_file(
        workspace.query_set(query_set.id) / query_sets.QUERIES,
        ("pairs", config.per_doc, config.max_documents),
        lambda: _pairs(workspace, query_set.id, config),
    )
    if not pairs:
        raise InputError(f"The query set {query_set.name} has no queries to train on.", hint="Generate or import some.")
    batch_size, epochs = settings.batch_size or pairs, settings.epochs or 1
    order = BatchOrder(pairs, batch_size, epochs)
    notes = [f"Licence of the model: {retriever.licence}"] if retriever.licence else []
    if not query_set.complete:
        notes.append("The query set is not complete yet: the training takes what is there when it starts.")
    if batch_size > pairs:
        noun = "pair" if pairs == 1 else "pairs"
        notes.append(f"There are only {pairs} {noun}, so every batch holds all of them.")
    elif order.left_out_per_epoch:
        notes.append(f"Each epoch leaves out {order.left_out_per_epoch} pairs (others each time): its last batch.")
    return Plan(pairs, documents, order.steps, settings, notes)


@access.writes
def start(
    workspace: Workspace,
    config: TrainingConfig,
    *,
    benchmarks: Sequence[tuple[str, str]] = (),
    before: bool = True,
    after: bool = True,
) -> Started:
    """Submit a training and, for each (benchmark, split), the evaluation of the retriever before and after it.

    An evaluation of the untrained retriever that is in the results already is not run again.
    """
    query_set = query_sets.resolve_query_set(workspace, config.query_set)
    base = resolve(config.retriever, workspace)
    checked = TrainingConfig.from_dict({**config.to_dict(), "query_set": query_set.id})
    plan(workspace, checked)
    wanted = [evaluation.checked(workspace, base.name, benchmark, split) for benchmark, split in benchmarks]
    weighting = "" if checked.weighting == "none" else f", {checked.weighting}"
    name = checked.name or f"{base.name} on {query_set.name}{weighting}"
    known: list[str] = []
    evaluations: list[str] = []
    if before:
        for wish in wanted:
            there = evaluation.existing(workspace, wish)
            if there:
                known.append(there)
            else:
                evaluations.append(evaluation.start(workspace, wish))
    job_id = jobs.submit(
        workspace,
        kind="training",
        name=name,
        module=WORKER,
        config=checked.to_dict(),
        launcher="accelerate",
        device=devices.request(checked.gpus, ids=checked.gpu_ids),
        inputs={"query_set": query_set.id, "query_set_hash": query_set.content_hash, "corpus": query_set.corpus_id},
    )
    if after:
        evaluations += [evaluation.start_after(workspace, wish, job_id) for wish in wanted]
    return Started(job_id, evaluations, known)


def command(config: TrainingConfig) -> str:
    """The command line that starts the same training."""
    return commands.train(config)


def results(workspace: Workspace) -> list[dict[str, object]]:
    """One row per trained retriever, newest first."""
    return catalog.retrievers(workspace)
