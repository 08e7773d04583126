"""Q-D metrics of a query set: the quick ones at once (kept until the set changes), the model-based ones by a job."""

from __future__ import annotations

import io
from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import corpus as corpus_room
from cdp import jobs
from cdp import metrics as room
from cdp.complexity import STANDARD, CwProfile, profile, stopwords_of
from cdp.config import MetricsConfig
from cdp.errors import InputError
from cdp.metrics import MEASURES, Measure, PairedDifference
from cdp.services import access, corpora
from cdp.services import kept as kept_answers
from cdp.synthesis import query_sets
from cdp.synthesis.query_sets import QuerySet
from cdp.workspace import Workspace, read_json_or_none, sha256_text, write_bytes, write_json

WORKER = "cdp.metrics.worker"
VERSION = "3"


@dataclass(frozen=True)
class QuickMetrics:
    """What needs no model. ``measures`` are value records at the full Q/Doc; ``by_per_doc[measure][M]`` nests M."""

    query_set: str
    language: str
    measures: list[dict[str, Any]]
    by_per_doc: dict[str, dict[int, float]]
    cw: CwProfile
    n_empty: int = 0
    kept: str = ""
    """Where the values of each document are kept: a file's name in the query set's folder."""


def measures() -> dict[str, Measure]:
    """Every measure by its name."""
    return dict(MEASURES)


def quick(
    workspace: Workspace, query_set: str, *, human: str = "", language: str = "", stopwords: str = STANDARD
) -> QuickMetrics:
    """Self-BLEU, CW and, given human queries for the same documents, Len-Sim. Raises InputError for an empty set.

    ``language`` is the corpus's if empty; ``stopwords`` is the name of a list or the file of one's own.
    """
    found = query_sets.resolve_query_set(workspace, query_set)
    reference = query_sets.resolve_query_set(workspace, human) if human else None
    language = language or corpora.cw_language(corpus_room.load_manifest(workspace, found.corpus_id))
    chosen = stopwords_of(stopwords)
    list_used = chosen if isinstance(chosen, str) else "\n".join(sorted(chosen))
    states = (_state(workspace, found), _state(workspace, reference) if reference else "")
    key = sha256_text(VERSION, *states, language, list_used)
    kept = workspace.query_set(found.id) / "measures" / f"{key[:16]}.json"
    columns = kept.with_suffix(".npz")
    values = read_json_or_none(kept)
    if not isinstance(values, dict) or not columns.exists():
        values, per_document = _measure(workspace, found, reference, language, chosen)
        content = io.BytesIO()
        np.savez(content, **per_document)  # type: ignore[arg-type]
        write_bytes(columns, content.getvalue())
        write_json(kept, values)
    return _from_record(found, language, values, columns.name)


def _measure(
    workspace: Workspace,
    found: QuerySet,
    reference: QuerySet | None,
    language: str,
    stopwords: str | Collection[str],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    human = None
    if reference is not None:
        human = {line["document_id"]: line["queries"] for line in query_sets.iter_lines(workspace, reference.id)}
    measured = room.measure_query_set(
        room.read_queries(workspace, found.id), language=language, stopwords=stopwords, human=human
    )
    if measured.cw.size == 0:
        raise InputError(f"The query set {found.name} has no queries yet.", hint="Generate or import some first.")
    values = {
        "values": [value.to_dict() for value in measured.values],
        "cw": asdict(profile(measured.cw)),
        "n_empty": measured.n_empty,
    }
    return values, {"document_id": np.array(measured.document_ids, dtype=np.str_), **measured.per_document}


def _from_record(found: QuerySet, language: str, values: dict[str, Any], kept: str) -> QuickMetrics:
    titled = [{**value, "title": MEASURES[value["name"]].title} for value in values["values"]]
    most = max((value["per_doc"] for value in titled), default=0)
    curves: dict[str, dict[int, float]] = {}
    for value in titled:
        if value["scope"] == "document" and value["value"] is not None:
            curves.setdefault(value["name"], {})[value["per_doc"]] = value["value"]
    cw = {**values["cw"], "histogram": tuple(values["cw"]["histogram"]), "interval": tuple(values["cw"]["interval"])}
    return QuickMetrics(
        query_set=found.id,
        language=language,
        measures=[value for value in titled if value["per_doc"] == most],
        by_per_doc=curves,
        cw=CwProfile(**cw),
        n_empty=values["n_empty"],
        kept=kept,
    )


def per_document(workspace: Workspace, measured: QuickMetrics) -> dict[str, NDArray[Any]]:
    """``document_id`` and a column per quick measure at the full Q/Doc, shape (n_documents,), NaN where undefined."""
    path = workspace.query_set(measured.query_set) / "measures" / measured.kept

    def read() -> dict[str, NDArray[Any]]:
        with np.load(path) as columns:
            return {name: columns[name] for name in columns.files}

    return kept_answers.of_file(path, "columns", read)


def paired(
    workspace: Workspace, first: QuickMetrics, second: QuickMetrics, measure: str = "self_bleu"
) -> PairedDifference:
    """second − first over the documents that have a value in both. InputError if there are none."""

    def compare() -> PairedDifference:
        a, b = per_document(workspace, first), per_document(workspace, second)
        return room.paired_difference(a["document_id"].tolist(), a[measure], b["document_id"].tolist(), b[measure])

    path = workspace.query_set(first.query_set) / "measures" / first.kept
    return kept_answers.of_file(path, ("paired", second.query_set, second.kept, measure), compare)


def paired_models(first: dict[str, Any], second: dict[str, Any]) -> PairedDifference | None:
    """The same for the paraphrase ratio of two metric jobs' results; None where the two cannot be compared: another
    scorer or threshold, or no document in common.
    """
    if any(first["scorer"][key] != second["scorer"][key] for key in ("measure", "model", "threshold")):
        return None
    name = first["scorer"]["measure"]
    a, b = first["per_document"], second["per_document"]
    columns = [np.array(side[name], dtype=np.float64) for side in (a, b)]
    try:
        return room.paired_difference(a["document_id"], columns[0], b["document_id"], columns[1])
    except InputError:
        return None


def values(measured: QuickMetrics, result: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Every value at the full Q/Doc within documents, by measure: the quick ones, and a metric job's where given.

    The paraphrase ratio stands under ``ce`` too, whichever model gave it.
    """
    found = {v["name"]: v for v in measured.measures if v["scope"] == "document" and v["value"] is not None}
    for value in result["measures"] if result else ():
        if value["value"] is not None and value["name"] in MODEL_BASED:
            found[value["name"]] = value
            if value["name"].startswith("paraphrase_ratio"):
                found["ce"] = value
    return found


def ce_by_per_doc(result: dict[str, Any]) -> dict[int, float]:
    """The paraphrase ratio within documents at each Q/Doc that a metric job gives."""
    name = result["scorer"]["measure"]
    return {
        v["per_doc"]: v["value"]
        for v in result["values"]
        if v["name"] == name and v["scope"] == "document" and v["value"] is not None
    }


MODEL_BASED = {name for name, measure in MEASURES.items() if measure.model_based}


def _state(workspace: Workspace, found: QuerySet) -> str:
    """What tells whether a query set has changed: its content hash, or its file's size while it still grows."""
    if found.content_hash:
        return found.content_hash
    path = workspace.query_set(found.id) / "queries.jsonl"
    return f"{found.id} {path.stat().st_size if path.exists() else 0}"


@access.writes
def start(workspace: Workspace, config: MetricsConfig) -> str:
    """Start the model-based measures; the job's id."""
    found = query_sets.resolve_query_set(workspace, config.query_set)
    human = query_sets.resolve_query_set(workspace, config.human).id if config.human else ""
    checked = MetricsConfig.from_dict({**config.to_dict(), "query_set": found.id, "human": human})
    return jobs.submit(
        workspace,
        kind="metrics",
        name=f"Q-D metrics of {found.name}",
        module=WORKER,
        config=checked.to_dict(),
        inputs={"query_set": found.id, "query_set_hash": found.content_hash, "human": human},
    )


def results(workspace: Workspace, query_set: str) -> list[dict[str, Any]]:
    """What finished metric jobs found for a query set, newest first: job id, measures, examples."""
    found = query_sets.resolve_query_set(workspace, query_set)
    rows = []
    for job in jobs.list_jobs(workspace, ["metrics"]):
        if job.config.get("query_set") == found.id:
            path = job.folder / "results" / "metrics.json"
            result = kept_answers.of_file(path, "json", partial(read_json_or_none, path))
            if isinstance(result, dict):
                rows.append({**result, "job_id": job.id, "created": job.created})
    return rows
