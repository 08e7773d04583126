"""Training a retriever: its time, offered retrievers, evaluations around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product

from cdp import catalog, query_sets
from cdp.base import permission
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import ANSWERS, Workspace
from cdp.corpus import load_manifest
from cdp.results import naming
from cdp.results.board import label
from cdp.retrievers import PRESETS, Default, bm25, leakage, resolve
from cdp.retrievers.presets import foreign
from cdp.retrievers.resolve import ResolvedRetriever, is_reserved, title_of, training_result
from cdp.services import access, completeness, evaluation, jobs, metrics
from cdp.services.jobs import Started
from cdp.training import plan as training_plan
from cdp.training.plan import DEFAULT_SPEEDS, STARTING_S, TrainingPlan, defaults_for, plan_of, trained_on, with_ids
from cdp.training.reasoning import resolved_reasoning
from cdp.training.weightings import WEIGHTINGS
from cdp.training.weightings.column import read_weights


@dataclass(frozen=True)
class RetrieverChoice:
    """Something that can be trained or evaluated: a preset, or what a training job made."""

    id: str
    title: str
    kind: str
    note: str = ""


def list_retrievers(workspace: Workspace, *, to_train: bool = False) -> list[RetrieverChoice]:
    """Return the presets, ``to_train`` also those that find nothing untrained; then the trained ones, newest first."""
    usable = (p for p in PRESETS.values() if to_train or not p.trained_only)
    choices = [RetrieverChoice(p.name, p.title, "preset", p.help) for p in usable]
    for view in naming.trained(workspace):
        made = training_result(view.folder) or view.config
        if view.has_model and made:
            base = f"trained from {made.get('retriever', '')}"
            choices.append(RetrieverChoice(view.id, title_of(view.kind, view.name), "job", base))

    return choices


def defaults(workspace: Workspace, retriever: str, lora: bool = False) -> dict[str, Default]:
    """Return the retriever's values for empty settings, each with its reason."""
    preset = PRESETS.get(retriever)  # known, wherever its weights are
    if preset is not None:
        return defaults_for(preset.defaults, lora)

    return defaults_for(resolve(access.model(workspace, retriever), workspace).defaults, lora)


def lacking(workspace: Workspace, retriever: str) -> Collection[str]:
    """Return the names of the settings that a retriever does not have."""
    preset = PRESETS.get(retriever)
    if preset is not None:
        return training_plan.lacking(retriever, preset.kind, static=preset.architecture == "static")

    found = resolve(access.model(workspace, retriever), workspace)
    return training_plan.lacking(retriever, found.kind, static=found.is_static)


# Below this share of their mean CW weights change little. Of MIRACL's queries the French and Chinese, whose range the
# paper calls narrow, lie 34% and 32% around it, the Arabic 43%.
NARROW_SPREAD = 0.35


def _checked(workspace: Workspace, config: TrainingConfig) -> tuple[ResolvedRetriever, TrainingPlan]:
    """Return the retriever and the plan of a training, without its time. Starts nothing and reads no model and no
    document.

    Also checks that reasoned queries are for the same corpus and that a file of weights is readable; whether every
    query has its weight is checked when the pairs are read.
    """
    if is_reserved(config.name):
        raise ConfigError(f"{config.name!r} is the name of a retriever already.", hint="Give the training another one.")
    retriever = resolve(config.retriever, workspace)
    query_set = completeness.check(workspace, query_sets.resolve_query_set(workspace, config.query_set)).query_set
    if WEIGHTINGS.named(config.weighting).needs == "column" and config.weights:
        ANSWERS.get(permission.to_read(workspace, config.weights), "weights", lambda: read_weights(config.weights, ()))

    config = with_ids(workspace, config)
    found = plan_of(workspace, resolved_reasoning(workspace, config, query_set), retriever, query_set)
    if config.dev.benchmark:
        evaluation.checked(workspace, bm25.NAME, config.dev.benchmark, found.settings.dev.split)

    return retriever, found


@access.reads
def plan(workspace: Workspace, config: TrainingConfig) -> TrainingPlan:
    """Return the plan of a training with its time, as far as it is known. Starts nothing."""
    retriever, found = _checked(workspace, config)
    language = load_manifest(workspace, found.query_set.corpus_id).main_language
    notes = [*foreign(config.retriever, language), *found.notes, *_spread_of_weights(workspace, found)]
    return dataclasses.replace(found, notes=notes, seconds=_seconds(workspace, retriever.name, found.seen))


def _spread_of_weights(workspace: Workspace, found: TrainingPlan) -> list[str]:
    """Return how far CW weights lie apart within a batch, in a sentence; nothing for other weightings."""
    if found.settings.weighting != "cw":
        return []
    cw = metrics.quick(workspace, found.settings.query_set).cw
    spread = cw.sd / cw.mean if cw.mean else 0.0
    sentence = f"CW weights lie {spread:.0%} around their mean (standard deviation)"
    if spread < NARROW_SPREAD:
        sentence += ": too narrow to matter much, as in French and Chinese in the paper"

    return [f"{sentence}."]


def _seconds(workspace: Workspace, retriever: str, pairs: int) -> float | None:
    """Return the seconds of a training on so many pairs, without evaluations; None if unknown."""
    for row in catalog.trainings(workspace):
        if row["retriever"] == retriever and (rate := row["result"].get("pairs_per_second")):
            return STARTING_S + pairs / float(rate)

    if shipped := DEFAULT_SPEEDS.get(retriever):
        return STARTING_S + pairs / shipped.pairs_per_second
    return None


@access.runs
def start(
    workspace: Workspace,
    config: TrainingConfig,
    *,
    benchmarks: Sequence[tuple[str, str]] = (),
    allow_incomplete: bool = False,
    allow_leakage: bool = False,
) -> Started:
    """Submit a training and, for each (benchmark, split), evaluations of the retriever before (where it finds anything
    then), after, and of BM25.

    Those of the untrained retriever and BM25 that are in the results already are not run again. ConfigError for a
    query set that is not whole, unless ``allow_incomplete``, and for one that holds what a benchmark judges, unless
    ``allow_leakage``: that marks the training and its results.
    """
    base, _ = _checked(workspace, config)
    completeness.require(workspace, trained_on(config), allow_incomplete)
    beside = [bm25.NAME]  # stands beside every score: a retriever that does not beat it is no gain
    if base.is_ready:
        beside.insert(0, base.name)

    wanted = [evaluation.checked(workspace, beside[0], benchmark, split) for benchmark, split in benchmarks]
    leaks = leakage.of_training(workspace, config, [(wish.judged.benchmark, wish.judged.split) for wish in wanted])
    leakage.require(leaks, allow_leakage)

    evaluations: list[str] = []
    for planned, name in product(wanted, beside):
        wish = planned.replace(retriever=name)
        if evaluation.existing(workspace, wish) is None:
            evaluations.append(jobs.start(workspace, "evaluation", wish))

    name = config.name or label(workspace, config)
    job_id = jobs.start(workspace, "training", config, inputs=leakage.links(leaks), name=name)
    for wish in wanted:
        evaluations.append(jobs.start(workspace, "evaluation", wish.replace(retriever=job_id), after=[job_id]))

    return Started(job_id, later=tuple(evaluations))
