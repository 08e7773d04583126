"""The catalogue follows the files: once, again, after changes, and with files that cannot be used."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from importlib import import_module

import duckdb
import pytest

from cdp import catalog
from cdp.base.workspace import Workspace, read_json, write_json
from tests.catalog.support import add_evaluation, add_job, evaluation
from tests.strategies import SOAK

pytestmark = pytest.mark.slow


def everything(workspace: Workspace) -> dict[str, list[object]]:
    """All rows of all tables, sorted: equal catalogues give equal values."""
    tables = ("trainings", "evaluations", "scores")
    return {table: sorted(catalog.query(workspace, f"SELECT * FROM {table}").rows, key=repr) for table in tables}


def filled(workspace: Workspace) -> None:
    add_job(workspace, "train-1", "train")
    training = {"id": "train-1", "retriever": "static-minilm", "query_set": "q-1", "weighting": "cw", "pairs": 35,
                "steps": 3, "seconds": 2, "loss_first": 1.0, "loss_last": 0.5, "model_hash": "m1"}  # fmt: skip
    write_json(workspace.job("train-1") / "results" / "training.json", training)
    add_job(workspace, "metrics-1", "metrics")
    add_evaluation(workspace, "evaluate-1", "static-minilm")
    add_evaluation(workspace, "evaluate-2", "train-1")


def test_every_kind_of_file_becomes_rows_once_and_again(workspace: Workspace) -> None:
    assert asdict(catalog.ingest(workspace)) == {"read": 0, "problems": []}
    filled(workspace)
    report = catalog.ingest(workspace)
    assert (report.read, report.problems) == (3, [])
    first = everything(workspace)
    assert {table: len(rows) for table, rows in first.items()} == {"trainings": 1, "evaluations": 2, "scores": 80}
    assert catalog.trainings(workspace)[0]["result"]["model_hash"] == "m1"
    assert catalog.ingest(workspace).read == 0
    assert catalog.rebuild(workspace).read == 3
    assert everything(workspace) == first


def test_changes_replace_and_deletions_remove(workspace: Workspace) -> None:
    filled(workspace)
    catalog.ingest(workspace)
    add_evaluation(workspace, "evaluate-1", "static-minilm", values={"q1": 0.25, "q2": 0.75})
    shutil.rmtree(workspace.job("evaluate-2"))
    assert catalog.ingest(workspace).read == 1
    (row,) = catalog.evaluations(workspace)
    assert row["ndcg@10"] == 0.5
    assert catalog.query(workspace, "SELECT count(*) FROM scores").rows == [(4,)]
    # A change within the same instant: neither time nor size differs, only what is inside.
    path = workspace.job("evaluate-1") / "results" / "evaluation.json"
    before = path.stat()
    add_evaluation(workspace, "evaluate-1", "static-minilm", values={"q1": 0.65, "q2": 0.15})
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert catalog.evaluations(workspace)[0]["ndcg@10"] == 0.4


BROKEN = {
    "no JSON": ('{"id": "evaluate', "not valid JSON"),
    "a list": ("[1, 2]", "not as expected"),
    "fields missing": ('{"schema": 1}', "not as expected"),
    "not UTF-8": (b'{"id": "\xff"}', "JSON"),
    "half a surrogate pair": (json.dumps(evaluation("evaluate-2", "\ud800")), "not as expected"),
    "a text for a number": (json.dumps(evaluation("evaluate-2", "b", seconds="long")), "not as expected"),
    "a score too few": (
        json.dumps(evaluation("evaluate-2", "b", per_query={"query_ids": ["q1", "q2"], "ndcg@10": [0.5]})),
        "2 query ids but 1 values",
    ),
    "a mean that is no number": (
        json.dumps(evaluation("evaluate-2", "b", measures={"ndcg@10": float("nan")})),
        "not a number",
    ),
}


def test_a_file_that_cannot_be_used_is_reported_and_stops_nothing(workspace: Workspace) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    broken = {f"evaluate-2-{number}": name for number, name in enumerate(BROKEN)}
    for job_id, name in broken.items():
        add_job(workspace, job_id)
        content, _ = BROKEN[name]
        path = workspace.job(job_id) / "results" / "evaluation.json"
        path.parent.mkdir()
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    report = catalog.ingest(workspace)
    for (job_id, name), problem in zip(broken.items(), report.problems, strict=True):
        assert job_id in problem
        assert BROKEN[name][1] in problem, name
    assert len(catalog.evaluations(workspace)) == 1
    for job_id in broken:
        add_evaluation(workspace, job_id, "b")
    assert catalog.ingest(workspace).problems == []
    assert len(catalog.evaluations(workspace)) == 1 + len(broken)


@pytest.mark.slow
def test_many_results_and_scores(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond one batch: evaluations of many queries each and two measures. Full batches take seconds to fill."""
    count, queries = (1200, 250) if SOAK else (25, 50)
    if not SOAK:
        monkeypatch.setattr(import_module("cdp.catalog.database"), "BATCH_FILES", 10)
    values = {f"query-{n}": n / queries for n in range(queries)}
    for n in range(count):
        add_evaluation(workspace, f"evaluate-{n:04d}", f"r{n % 20}", f"b{n % 5}", values)
    assert catalog.ingest(workspace).read == count
    assert catalog.query(workspace, "SELECT count(*), sum(value) FROM scores WHERE measure = 'ndcg@10'").rows == [
        (queries * count, pytest.approx(count * sum(values.values())))
    ]
    assert len(catalog.evaluations(workspace)) == count


def test_a_catalogue_of_another_version_or_another_place_is_rebuilt(workspace: Workspace) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    catalog.ingest(workspace)
    mark = workspace.root / "catalog.json"
    for other in ({"version": "other"}, {"inode": 1}, [], None):
        with duckdb.connect(str(workspace.catalog)) as connection:
            connection.execute(
                "INSERT INTO trainings (source, id) VALUES ('jobs/deleted/results/training.json', 'deleted')"
            )
        if other is None:
            mark.unlink()
        else:
            write_json(mark, {**read_json(mark), **other} if other else other)
        evaluations, trainings = catalog.runs(workspace)
        assert [row["id"] for row in evaluations] == ["evaluate-1"], other
        assert trainings == [], other


def test_duckdb_1_4_can_open_the_catalogue(workspace: Workspace) -> None:
    catalog.query(workspace, "SELECT 1")
    with duckdb.connect(str(workspace.root / "catalog.duckdb"), read_only=True) as connection:
        found = connection.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'catalog'").fetchone()
    assert found == ({"storage_version": "v1.4.0+"},)
