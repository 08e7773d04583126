"""The training settings in which the retrievers of a comparison differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdp.base.workspace import Workspace
from cdp.query_sets import list_query_sets
from cdp.services.results import seeds

WRITTEN_BY = "queries_written_by"
"""Beside the training settings that differ: who wrote the queries, and under which licence."""


def settings_of(workspace: Workspace, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a run was trained with; None if it was not trained here, or nobody can tell."""
    if row.get("trained") is not None:
        settings: Mapping[str, Any] = row["trained"].settings
        return settings
    return seeds.settings_of(workspace, row["retriever_id"]) if row["retriever_kind"] == "job" else None


def differing(
    workspace: Workspace, names: dict[str, str], of: Mapping[str, Mapping[str, Any] | None], without: set[str]
) -> dict[str, dict[str, Any]]:
    """The training settings in which the retrievers differ: setting → retriever → value."""
    configs = {name: of[retriever_id] for retriever_id, name in names.items()}
    trained = {name: config for name, config in configs.items() if config is not None}
    settings: dict[str, dict[str, Any]] = {}
    for setting in dict.fromkeys(key for config in trained.values() for key in config if key not in without):
        values = {name: config.get(setting) for name, config in trained.items()}
        if len({str(value) for value in values.values()}) > 1:
            settings[setting] = values
    if "query_set" in settings:
        by = {q.id: q.written_by + (f", {q.licence}" if q.licence else "") for q in list_query_sets(workspace)}
        settings[WRITTEN_BY] = {name: by.get(str(set_id), "–") for name, set_id in settings["query_set"].items()}
    return settings
