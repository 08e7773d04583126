"""What a study is to train on: the query sets of its plan, and those that its methods have written or still have to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from cdp import query_sets
from cdp.base.config import SynthesisConfig, TrainingConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace
from cdp.corpus import resolve_corpus
from cdp.query_sets import QuerySet
from cdp.services import corpora
from cdp.services.queries import synthesis
from cdp.services.studies import filtered
from cdp.studies import StudyConfig, StudySource
from cdp.studies.estimate import PlannedGeneration
from cdp.studies.plan import BY, ON, counted, method_of, needs_reasoning
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.methods import get_method
from cdp.training.reasoning import check_reasoned


def sources(workspace: Workspace, config: StudyConfig) -> tuple[list[StudySource], list[PlannedGeneration]]:
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
    sets: list[QuerySet | None] = []
    for name in config.items("query_sets"):
        query_set = query_sets.resolve_query_set(workspace, name)
        kind = "human" if query_set.kind == "human" else query_set.method
        reasoning = _reasoning(workspace, config, query_set)
        source = counted(workspace, StudySource(_label(query_set), kind, query_set.id, reasoning=reasoning))
        if not source.n_documents:
            raise InputError(f"The query set {query_set.name} has no queries to train on.")
        sources.append(source)
        sets.append(query_set)
    missing: dict[int, PlannedGeneration] = {}
    most = max(config.numbers("per_doc", minimum=1))
    for corpus in config.items("corpus") if config.items("methods") else ():
        manifest = resolve_corpus(workspace, corpus)
        n_documents = min(manifest.n_documents, _documents_needed(config) or manifest.n_documents)
        for method in config.items("methods"):
            get_method(method)
            existing_set = _existing_set(workspace, manifest.id, method, config, most)
            sets.append(existing_set)
            if existing_set is not None:
                reasoning = _reasoning(workspace, config, existing_set)
                sources.append(counted(workspace, StudySource(method, method, existing_set.id, reasoning=reasoning)))
            else:
                if any(map(needs_reasoning, config.items("weightings"))):
                    raise ConfigError(
                        "RI needs reasoned forms of queries that are there.",
                        hint="Write the queries and their reasoned forms first, and name both as query sets.",
                    )
                source = StudySource(
                    method, method, "", "", n_documents, language=corpora.cw_language(manifest), corpus=manifest.id
                )
                missing[len(sources)] = _generation(workspace, config, source)
                sources.append(source)
    told = _told_apart(workspace, config, sources, sets)
    return told, [dataclasses.replace(planned, method=told[at].label) for at, planned in missing.items()]


def _told_apart(
    workspace: Workspace, config: StudyConfig, sources: Sequence[StudySource], sets: Sequence[QuerySet | None]
) -> list[StudySource]:
    """The sources with labels of their own: with the corpus where there are several, with the generator where a method
    is there by several, and by name or id where that is not enough. ``sets`` are their query sets as far as there."""
    several = len({source.corpus for source in sources}) > 1
    names = {source.corpus: resolve_corpus(workspace, source.corpus).name for source in sources} if several else {}
    written_by = [config.generator if q is None else "" if q.imported else q.generator for q in sets]
    labels = [source.label for source in sources]
    clashing = {
        label
        for label in labels
        if len({by for own, by in zip(labels, written_by, strict=True) if own == label and by}) > 1
    }
    used: set[str] = set()
    told = []
    for source, query_set, by in zip(sources, sets, written_by, strict=True):
        label = f"{source.label}{BY}{by}" if source.label in clashing and by else source.label
        label = f"{label}{ON}{names[source.corpus]}" if several else label
        if label in used and query_set is not None:
            label = query_set.name if query_set.name not in used else query_set.id
        used.add(label)
        told.append(dataclasses.replace(source, label=label))
    return told


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


def _generation(workspace: Workspace, config: StudyConfig, source: StudySource) -> PlannedGeneration:
    """What it takes to have the queries of a source written, counted on a sample of the documents."""
    if not GENERATORS[config.generator].endpoint:
        return PlannedGeneration(source.label, config.generator)
    cost_estimate = synthesis.estimate(workspace, synthesis_of(config, source))
    return PlannedGeneration(
        source.label,
        config.generator,
        cost_estimate.requests,
        cost_estimate.input_tokens,
        cost_estimate.output_tokens,
        cost_estimate.cost,
    )


def _label(query_set: QuerySet) -> str:
    unnamed = query_set.method == "imported"  # which would tell two of them from nothing
    return "human" if query_set.kind == "human" else (not unnamed and query_set.method) or query_set.name


def _existing_set(workspace: Workspace, corpus_id: str, method: str, config: StudyConfig, most: int) -> QuerySet | None:
    """The newest complete set of this method and generator with enough queries per document for all documents; one for
    the corpus's first documents only where there is none of a draw or of all."""
    needed = _documents_needed(config)
    first: QuerySet | None = None
    for query_set in query_sets.list_query_sets(workspace):
        same = (
            query_set.corpus_id == corpus_id
            and query_set.method == method
            and query_set.generator == config.generator
            and (not GENERATORS[config.generator].is_llm or query_set.model == config.model_name)
        )
        limit = query_set.parameters.get("limit")
        enough = query_set.per_doc >= most and (limit is None or (needed is not None and limit >= needed))
        # A copy without some of its queries says the same of method and Q/Doc: it is not what the method wrote.
        if same and enough and query_set.complete and not query_set.parameters.get("made_from"):
            if limit is None or query_set.parameters.get("draw") is not None:
                return query_set
            first = first or query_set
    return first


def _documents_needed(config: StudyConfig) -> int | None:
    """How many documents the study looks at; None for all."""
    if config.budget is None:
        return config.max_documents
    most = max(2, config.budget // min(config.numbers("per_doc", minimum=1)))
    return most if config.max_documents is None else min(most, config.max_documents)


def synthesis_of(config: StudyConfig, source: StudySource) -> SynthesisConfig:
    """The job that writes a source's queries."""
    n = len(config.items("methods")) * len(config.items("corpus"))
    return SynthesisConfig.from_dict(
        {
            "corpus": source.corpus,
            "method": method_of(source.label),
            "per_doc": max(config.numbers("per_doc", minimum=1)),
            "generator": config.generator,
            "model": config.model,
            "base_url": config.base_url,
            "limit": _documents_needed(config),
            "draw": config.numbers("seeds", minimum=0)[0],
            "budget": config.spend / n if config.spend else None,
        }
    )
