"""What an evaluation was of: what it retrieved, its queries, their judgments, and the documents that are looked at."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cdp import benchmarks, catalog
from cdp.base.errors import CdpError, ConfigError, InputError, NotFoundError
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace
from cdp.benchmarks import beir_files, manifests
from cdp.benchmarks.benchmark import part, qrels_files
from cdp.evaluation.results import read_result, read_run, run_file
from cdp.retrievers import leakage
from cdp.retrievers.encode import HALF_PRECISION

Judgments = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Passage:
    """A document as it stands in the corpus file; ``fields`` holds every field of its line."""

    id: str
    title: str
    text: str
    fields: dict[str, Any]


def find(workspace: Workspace, name: str, evaluations: Sequence[dict[str, Any]] | None = None) -> dict[str, Any]:
    """The catalogue's row of an evaluation, by its id or the beginning of it. NotFoundError; ConfigError if many.

    ``evaluations`` are the catalogue's rows, read now if left out.
    """
    rows = catalog.evaluations(workspace, studies=True) if evaluations is None else evaluations
    matches = [row for row in rows if row["id"] == name] or [row for row in rows if name and row["id"].startswith(name)]
    if len(matches) > 1:
        raise ConfigError(f"{name!r} is the beginning of {len(matches)} evaluations.", hint="Write more of its id.")
    if not matches:
        raise NotFoundError("evaluation", name, known=[row["id"] for row in rows], hint="See results list.")
    return matches[0]


def record(workspace: Workspace, row: dict[str, Any]) -> dict[str, Any]:
    """The evaluation's ``results/evaluation.json``. InputError if it has gone."""
    value = read_result(workspace.job(row["job_id"]))
    if value is None:
        if "study" in row["settings"]:
            raise InputError(
                f"{row['id']} is a training of the study {row['settings']['study']}: its scores are kept, no files.",
                hint="Train and evaluate it on its own to have them: jobs show gives its settings.",
            )
        raise InputError(f"The result of {row['id']} is no longer there.", hint="Evaluate once more.")
    return value


def without_results(counts: Mapping[str, Any]) -> list[str]:
    """The sentence on judged queries for which nothing was retrieved, if there are any."""
    absent, queries = int(counts.get("judged_without_results", 0)), int(counts.get("judged_queries", 0))
    return [f"Nothing was retrieved for {absent:,} of {queries:,} judged queries; they count 0."] if absent else []


def of_counts(counts: Mapping[str, Any]) -> list[str]:
    """What an evaluation counted that has to be said: leaked queries, a stopped training, queries without results."""
    return [*leakage.remarks(counts, int(counts.get("judged_queries", 0))), *without_results(counts)]


def remarks(workspace: Workspace, row: dict[str, Any]) -> list[str]:
    """What has to be said beside a score: queries without results, half precision, and what is odd of its benchmark.

    The benchmark's own remarks are left out if it was changed since, or is no longer there.
    """
    notes = of_counts(row["counts"])
    notes += [HALF_PRECISION] if row["settings"].get("precision") == "fp16" else []
    try:
        info = benchmarks.describe(folder(workspace, row), workspace)
    except CdpError:
        return notes
    return [*notes, *(info.warnings if info.content_hash == row["benchmark_hash"] else ())]


def retrieved(workspace: Workspace, row: dict[str, Any]) -> dict[str, dict[str, float]]:
    """{query: {document: score}} that the evaluation retrieved. InputError if it was not kept."""
    path = file_of_run(workspace, row)
    if not path.is_file():
        raise InputError(f"What {row['id']} retrieved was not kept.", hint="Evaluate once more to have it.")
    return ANSWERS.get(path, "run", partial(read_run, path))


def folder(workspace: Workspace, row: dict[str, Any]) -> Path:
    """Where the evaluation's benchmark lies. NotFoundError if it is no longer there."""
    for name in (row["benchmark"], row["folder"]):
        try:
            return benchmarks.resolve_benchmark(name, workspace)
        except CdpError:
            continue
    raise NotFoundError("benchmark", row["benchmark"], hint="Add it to the workspace again: benchmarks add FOLDER.")


def file_of_run(workspace: Workspace, row: dict[str, Any]) -> Path:
    """Where what an evaluation retrieved is kept."""
    return run_file(workspace.job(row["job_id"]))


def judgments(workspace: Workspace, row: dict[str, Any], queries: Collection[str]) -> Judgments:
    """{query: {document: grade}} of the queries that were evaluated, as the file has them.

    InputError if the benchmark was changed since, so that one of them is no longer judged.
    """
    where = folder(workspace, row)
    file = qrels_files(where).get(row["split"])
    if file is None:
        raise InputError(f"{row['benchmark']} has no split {row['split']!r} any more.", hint="Evaluate once more.")
    grades = ANSWERS.get(file, "grades", lambda: beir_files.read_qrels(file).grades)
    gone = [query for query in queries if query not in grades]
    if gone:
        raise InputError(
            f"{row['benchmark']} was changed: {len(gone):,} queries of {row['id']} are no longer judged "
            f"(first: {gone[0]!r}).",
            hint="Evaluate once more.",
        )
    return {query: grades[query] for query in queries}


def relevant_from(workspace: Workspace, row: dict[str, Any]) -> int:
    """The grade from which a document counts as relevant in this benchmark."""
    return int(manifests.read(folder(workspace, row)).relevant_from)


def texts(workspace: Workspace, row: dict[str, Any]) -> dict[str, str]:
    """``queries``; empty if the benchmark is no longer there or cannot be read."""
    try:
        return queries(workspace, row)
    except CdpError:
        return {}


def queries(workspace: Workspace, row: dict[str, Any]) -> dict[str, str]:
    """{query: text} of the evaluation's benchmark, those of other splits among them."""
    file = part(folder(workspace, row), "queries")
    return ANSWERS.get(
        file, "texts", lambda: {query: line.text for query, line in beir_files.read_queries(file).items()}
    )


def passages(workspace: Workspace, row: dict[str, Any], wanted: Collection[str]) -> dict[str, Passage]:
    """The documents of these ids, in one pass over the corpus file; those that it lacks are left out."""
    file = part(folder(workspace, row), "corpus")
    document_ids = frozenset(wanted)
    return ANSWERS.get(file, ("passages", document_ids), lambda: _passages(file, document_ids))


def _passages(file: Path, wanted: frozenset[str]) -> dict[str, Passage]:
    passages_by_id: dict[str, Passage] = {}
    for _, line in beir_files.lines_of(file):
        fields = json.loads(line) if line else {}
        identifier = str(fields.get("_id", fields.get("id", "")))
        if identifier in wanted:
            passages_by_id[identifier] = Passage(
                identifier, str(fields.get("title") or ""), str(fields.get("text", "")), fields
            )
            if len(passages_by_id) == len(wanted):
                break
    return passages_by_id
