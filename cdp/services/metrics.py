"""Q-D metrics of a query set: quick ones kept beside it, model-based ones by a job; paired difference of two."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cdp import catalog, query_sets
from cdp.base.workspace import ANSWERS, Workspace
from cdp.metrics import MEASURES, PairedDifference, paired_difference
from cdp.metrics import query_set as of_query_sets
from cdp.metrics.query_set import QuickMeasures


def quick(workspace: Workspace, query_set: str, *, human: str = "", per_doc: int | None = None) -> QuickMeasures:
    """Return Self-BLEU, CW and, given human queries for the same documents, Len-Sim, of the first ``per_doc`` queries
    of each document (None: all). InputError for an empty set.

    Measured once, in a second per 12,000 queries, and read from then on.
    """
    named = query_sets.resolve_query_set(workspace, query_set)
    reference = query_sets.resolve_query_set(workspace, human) if human else None
    return of_query_sets.quick(workspace, named, human=reference, per_doc=per_doc)


def paired(workspace: Workspace, first: QuickMeasures, second: QuickMeasures) -> PairedDifference:
    """Self-BLEU of the second minus that of the first, over the documents that have a value in both. InputError if
    there are none."""
    path = query_sets.files(workspace, first.query_set).measures / first.kept
    question = ("paired", second.query_set, second.kept)
    return ANSWERS.get(path, question, lambda: paired_difference(first.documents, second.documents))


def fitting(workspace: Workspace, measured: QuickMeasures) -> dict[str, dict[str, Any]]:
    """Return all values of a set by measure: what was kept beside ``measured``, and for each model-based measure the
    newest of the same content, Q/Doc and, where it compares with human queries, human set; none that fits less."""
    found: dict[str, dict[str, Any]] = {}
    for row in reversed(catalog.metrics(workspace)):
        if row["job_id"] and row["measure"] in MEASURES and _fits(row, measured):
            found[row["measure"]] = row

    for value in measured.measures:
        if value.value is not None and value.name in MEASURES:
            found[value.name] = {**asdict(value), "job_id": ""}

    return found


def _fits(row: dict[str, Any], measured: QuickMeasures) -> bool:
    same = ("query_set", "query_set_hash", "per_doc")
    compares = row["measure"] in MEASURES and MEASURES[row["measure"]].needs.startswith("human queries")
    alike = all(row[name] == getattr(measured, name) for name in same)
    return alike and (not compares or row["human"] == measured.human)
