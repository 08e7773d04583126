"""Which conditions of a study are there already, from this study or another: they take no time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.retrievers import ResolvedRetriever
from cdp.studies import StudyConfig, StudySource, records
from cdp.studies.plan import conditions, training_config
from cdp.studies.sources import condition_pairs, equal_steps
from cdp.training.settings import complete


def reused(
    workspace: Workspace,
    config: StudyConfig,
    sources: Sequence[StudySource],
    retrievers: Mapping[str, ResolvedRetriever],
    evaluation_keys: Sequence[str],
    dev: str = "",
) -> set[str]:
    """The conditions (as text) that have scores under all ``evaluation_keys``, and the retrievers that have untrained
    ones.

    The weights of an untrained retriever are not loaded to tell: they are taken to be those of earlier studies.
    """
    records_by_key: dict[str, Mapping[str, Any]] = {}
    bases: dict[str, set[str]] = defaultdict(set)
    for folder in sorted(workspace.jobs.glob("study-*")):
        for record in records.list_records(folder):
            if not record.get("failure") and all(
                evaluation_key in record["evaluations"] for evaluation_key in evaluation_keys
            ):
                records_by_key[str(record["key"])] = record
                bases[str(record["retriever"])].add(str(record.get("base_hash", "")))
    reusable = {
        name
        for name in retrievers
        if any(records.untrained_key(base, config.max_length) in records_by_key for base in bases[name])
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
        if any(record_key in records_by_key for record_key in keys):
            reusable.add(str(condition))
    return reusable
