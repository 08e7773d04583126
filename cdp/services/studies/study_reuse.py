"""Which conditions of a study are there already, from this study or another: they take no time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.retrievers import ResolvedRetriever
from cdp.studies import StudyConfig, StudySource, records
from cdp.studies.plan import condition_pairs, conditions, equal_steps, evaluated_on, training_config
from cdp.training.plan import complete


def reused(
    workspace: Workspace,
    config: StudyConfig,
    sources: Sequence[StudySource],
    retrievers: Mapping[str, ResolvedRetriever],
    evaluation_keys: Sequence[str],
    dev: str = "",
    languages: Sequence[str] = (),
) -> set[str]:
    """The conditions (as text) that have scores under the ``evaluation_keys`` that they are to have, and the retrievers
    that have untrained ones. ``languages`` are those of the benchmarks.

    The weights of an untrained retriever are not loaded to tell: they are taken to be those of earlier studies.
    """
    records_by_key: dict[str, Mapping[str, Any]] = {}
    bases: dict[str, set[str]] = defaultdict(set)
    for folder in sorted(workspace.jobs.glob("study-*")):
        for record in records.list_records(folder):
            if not record.get("failure"):
                records_by_key[str(record["key"])] = record
                bases[str(record["retriever"])].add(str(record.get("base_hash", "")))
    reusable = {
        name
        for name in retrievers
        if any(
            _has(records_by_key.get(records.untrained_key(base, config.max_length)), evaluation_keys)
            for base in bases[name]
        )
    }
    by_label = {source.label: source for source in sources}
    pairs_of: dict[tuple[Any, ...], str] = {}
    for condition in conditions(config, sources):
        retriever, source = retrievers[condition.retriever], by_label[condition.source]
        if not bases[condition.retriever] or not source.query_set:
            continue
        drawn = condition.max_documents is not None or condition.budget is not None
        key = (condition.source, condition.per_doc, condition.budget, condition.seed if drawn else None)
        settings = complete(training_config(config, condition, source.query_set, source.reasoning), retriever)
        try:
            if key not in pairs_of:
                pairs_of[key] = condition_pairs(workspace, config, source, condition).content_hash
            steps = equal_steps(workspace, config, source, condition, settings)
        except CdpError:  # the study itself will say what is wrong with these pairs
            continue
        keys = (
            records.condition_key(
                base,
                pairs_of[key],
                settings,
                similarity=retriever.similarity[config.protocol],
                dev=dev,
                steps=steps,
            )
            for base in bases[condition.retriever]
        )
        there = evaluated_on(config, source, languages or [""] * len(evaluation_keys))
        wanted = [place for place, judged in zip(evaluation_keys, there, strict=True) if judged]
        if any(_has(records_by_key.get(record_key), wanted) for record_key in keys):
            reusable.add(str(condition))
    return reusable


def _has(record: Mapping[str, Any] | None, places: Sequence[str]) -> bool:
    """Whether a record has scores at all of these places."""
    return record is not None and all(place in record["evaluations"] for place in places)
