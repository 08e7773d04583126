"""Q-D metrics of a query set: quick ones kept beside it, model-based ones by a job; paired difference of two."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from cdp import jobs, query_sets
from cdp.base.records import Real, fields, whole
from cdp.base.workspace import ANSWERS, Workspace
from cdp.metrics import MEASURES, PairedDifference, paired_difference
from cdp.metrics import query_set as room
from cdp.metrics.query_set import QuickMeasures


def quick(workspace: Workspace, query_set: str, *, human: str = "") -> QuickMeasures:
    """Return Self-BLEU, CW and, given human queries for the same documents, Len-Sim. InputError for an empty set.

    Measured once, in a second per 12,000 queries, and read from then on.
    """
    named = query_sets.resolve_query_set(workspace, query_set)
    reference = query_sets.resolve_query_set(workspace, human) if human else None
    return room.quick(workspace, named, human=reference)


def paired(workspace: Workspace, first: QuickMeasures, second: QuickMeasures) -> PairedDifference:
    """Self-BLEU of the second minus that of the first, over the documents that have a value in both. InputError if
    there are none."""
    path = query_sets.files(workspace, first.query_set).measures / first.kept
    question = ("paired", second.query_set, second.kept)
    return ANSWERS.get(path, question, lambda: paired_difference(first.documents, second.documents))


def values(measured: QuickMeasures, result: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the defined values at the full Q/Doc by measure: the quick ones, and a metric job's if given."""
    found = [*map(asdict, measured.measures), *(result["measures"] if result else ())]
    return {value["name"]: value for value in found if value["value"] is not None and value["name"] in MEASURES}


_MEASURES = fields({"measures": list[fields({"name": str, "value": Real | None})]})  # type: ignore[misc]


def results(workspace: Workspace, query_set: str) -> list[dict[str, Any]]:
    """Return the results of finished metric jobs for a query set, newest first: job id, measures, examples."""
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    rows = []
    for job in jobs.list_jobs(workspace, ["metrics"]):
        if job.config.get("query_set") == resolved_set.id:
            path = job.folder / "results" / "metrics.json"
            result = ANSWERS.get(path, "measures", partial(whole, _MEASURES, path))
            if result is not None:
                rows.append({**result, "job_id": job.id, "created": job.created})
    return rows
