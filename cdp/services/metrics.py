"""Q-D metrics of a query set: the quick ones, kept beside the set, and the model-based ones by a job."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from cdp import jobs, query_sets
from cdp.base.config import MetricsConfig
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.complexity import CwProfile
from cdp.metrics import MEASURES, PairedDifference, paired_difference
from cdp.metrics import quick as quick_room
from cdp.services import access, completeness


@dataclass(frozen=True)
class QuickMetrics:
    """Measures that need no model: ``measures`` are value records at the full Q/Doc; ``by_per_doc[measure][M]``.

    ``failed`` are the first of the ``n_failed`` documents that could not be measured, each with its ``id`` and
    ``reason``. ``note`` says what an incomplete set lacks. ``kept`` is the file with the values of each document, in
    the folder of the set's measures.
    """

    query_set: str
    language: str
    measures: list[dict[str, Any]]
    by_per_doc: dict[str, dict[int, float]]
    cw: CwProfile
    n_empty: int = 0
    n_failed: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""
    kept: str = ""


def quick(workspace: Workspace, query_set: str, *, human: str = "", language: str = "") -> QuickMetrics:
    """Return Self-BLEU, CW and, given human queries for the same documents, Len-Sim. InputError for an empty set.

    ``language`` is the corpus's if empty. Measured once, in a second per 12,000 queries, and read from then on.
    """
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    reference = query_sets.resolve_query_set(workspace, human).id if human else ""
    plan = quick_room.plan(workspace, resolved_set.id, human=reference, language=language)
    values = plan.load() or quick_room.measure(plan)
    assert values is not None  # nothing told it to stop
    titled = [
        {**value, "interval": value["interval"] and tuple(value["interval"]), "title": MEASURES[value["name"]].title}
        for value in values["values"]
    ]
    most = max((value["per_doc"] for value in titled), default=0)
    curves: dict[str, dict[int, float]] = {}
    for value in titled:
        if value["scope"] == "document" and value["value"] is not None:
            curves.setdefault(value["name"], {})[value["per_doc"]] = value["value"]
    cw = {**values["cw"], "histogram": tuple(values["cw"]["histogram"]), "interval": tuple(values["cw"]["interval"])}
    return QuickMetrics(
        query_set=resolved_set.id,
        language=plan.language,
        measures=[value for value in titled if value["per_doc"] == most],
        by_per_doc=curves,
        cw=CwProfile(**cw),
        n_empty=values["n_empty"],
        n_failed=values.get("n_failed", 0),
        failed=values.get("failed", []),
        note="" if resolved_set.complete else completeness.check(workspace, resolved_set).sentence,
        kept=plan.columns.name,
    )


def paired(workspace: Workspace, first: QuickMetrics, second: QuickMetrics) -> PairedDifference:
    """Self-BLEU of the second minus that of the first, over the documents that have a value in both. InputError if
    there are none."""
    paths = [query_sets.files(workspace, m.query_set).measures / m.kept for m in (first, second)]

    def compare() -> PairedDifference:
        with np.load(paths[0]) as a, np.load(paths[1]) as b:
            return paired_difference(
                a["document_id"].tolist(), a["self_bleu"], b["document_id"].tolist(), b["self_bleu"]
            )

    return ANSWERS.get(paths[0], ("paired", str(paths[1])), compare)


def values(measured: QuickMetrics, result: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the values at the full Q/Doc within documents by measure: the quick ones, and a metric job's if given.

    The paraphrase ratio stands under ``ce`` too, whichever model gave it.
    """
    by_measure = {v["name"]: v for v in measured.measures if v["scope"] == "document" and v["value"] is not None}
    for value in result["measures"] if result else ():
        if value["value"] is not None and MEASURES[value["name"]].model_based:
            by_measure[value["name"]] = value
            if value["name"].startswith("paraphrase_ratio"):
                by_measure["ce"] = value
    return by_measure


def ce_by_per_doc(result: dict[str, Any]) -> dict[int, float]:
    """The paraphrase ratio within documents at each Q/Doc that a metric job gives."""
    name = result["scorer"]["measure"]
    return {
        v["per_doc"]: v["value"]
        for v in result["values"]
        if v["name"] == name and v["scope"] == "document" and v["value"] is not None
    }


@access.runs
def start(workspace: Workspace, config: MetricsConfig) -> str:
    """Start the model-based measures; return the job's id."""
    query_set = query_sets.resolve_query_set(workspace, config.query_set)
    human = query_sets.resolve_query_set(workspace, config.human).id if config.human else ""
    checked = MetricsConfig.from_dict({**config.to_dict(), "query_set": query_set.id, "human": human})
    return jobs.submit(
        workspace,
        kind="metrics",
        name=f"Q-D metrics of {query_set.name}",
        module="cdp.workers.metrics",
        config=checked.to_dict(),
        inputs={
            "query_set": query_set.id,
            "query_set_hash": query_sets.content_hash(workspace, query_set),
            "human": human,
        },
        device=jobs.DeviceRequest.cpu(),
    )


def results(workspace: Workspace, query_set: str) -> list[dict[str, Any]]:
    """Return the results of finished metric jobs for a query set, newest first: job id, measures, examples."""
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    rows = []
    for job in jobs.list_jobs(workspace, ["metrics"]):
        if job.config.get("query_set") == resolved_set.id:
            path = job.folder / "results" / "metrics.json"
            result = ANSWERS.get(path, "json", partial(read_json_or_none, path))
            if isinstance(result, dict):
                rows.append({**result, "job_id": job.id, "created": job.created})
    return rows
