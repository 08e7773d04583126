"""What was measured of a query set: beside it, by measures that need no model, and by metrics jobs.

Whoever measures writes; this reads, for whoever says what is known of a set.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from cdp.base.workspace import Workspace, read_json_or_none
from cdp.query_sets.store import files


def quick_file(workspace: Workspace, query_set: str, key: str) -> Path:
    """Where the quick measures under this key lie; the values of each document are beside it, as ``.npz``."""
    return files(workspace, query_set).measures / f"{key}.json"


def measured(
    workspace: Workspace, query_set: str, names: Collection[str], per_doc: int | None = None
) -> list[dict[str, Any]]:
    """The values of these measures, in their order, at the Q/Doc that is asked: those that need no model from beside
    the set, the others from its newest metrics job. Empty where nothing was measured.

    Within documents only; each measure at ``per_doc``, or at the most queries that it was measured for.
    """
    newest = max(files(workspace, query_set).measures.glob("*.json"), key=lambda p: p.stat().st_mtime, default=None)
    quick = (read_json_or_none(newest) if newest is not None else None) or {}
    jobs = (read_json_or_none(path) for path in workspace.jobs.glob("*/results/metrics.json"))
    ours = [result for result in jobs if isinstance(result, dict) and result.get("query_set") == query_set]
    job = max(ours, key=lambda result: str(result.get("created", "")), default={})
    chosen: dict[str, dict[str, Any]] = {}
    for value in (*quick.get("values", ()), *job.get("values", ())):
        defined = value["scope"] == "document" and value["value"] is not None and value["name"] in names
        within = per_doc is None or value["per_doc"] <= per_doc
        if defined and within and value["per_doc"] >= chosen.get(value["name"], value)["per_doc"]:
            chosen[value["name"]] = value
    return [chosen[name] for name in names if name in chosen]
