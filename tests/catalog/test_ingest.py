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
from cdp.base.workspace import Workspace, write_json
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


def test_every_kind_of_file_becomes_rows(workspace: Workspace) -> None:
    filled(workspace)
    report = catalog.ingest(workspace)
    assert (report.read, report.problems) == (3, [])
    counts = {table: len(rows) for table, rows in everything(workspace).items()}
    assert counts == {"trainings": 1, "evaluations": 2, "scores": 80}
    assert catalog.trainings(workspace)[0]["result"]["model_hash"] == "m1"


@pytest.mark.slow
def test_again_changes_nothing_and_a_rebuild_gives_the_same(workspace: Workspace) -> None:
    filled(workspace)
    catalog.ingest(workspace)
    first = everything(workspace)
    assert catalog.ingest(workspace).read == 0
    assert everything(workspace) == first
    report = catalog.rebuild(workspace)
    assert report.read == 3
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


def test_a_change_within_the_same_instant_is_seen(workspace: Workspace) -> None:
    """Neither time nor size differs, only what is inside."""
    add_evaluation(workspace, "evaluate-1", "a", values={"q1": 0.25})
    path = workspace.job("evaluate-1") / "results" / "evaluation.json"
    before = path.stat()
    catalog.ingest(workspace)
    add_evaluation(workspace, "evaluate-1", "a", values={"q1": 0.75})
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert catalog.evaluations(workspace)[0]["ndcg@10"] == 0.75


BROKEN = {
    "no JSON": ('{"id": "evaluate', "not valid JSON"),
    "a list": ("[1, 2]", "not as expected"),
    "fields missing": ('{"schema": 1}', "not as expected"),
    "not UTF-8": (b'{"id": "\xff"}', "JSON"),
    "half a surrogate pair": (json.dumps(evaluation("evaluate-2", "\ud800")), "not as expected"),
    "a text for a number": (json.dumps(evaluation("evaluate-2", "b", seconds="long")), "not as expected"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_used_is_reported_and_stops_nothing(workspace: Workspace, name: str) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    add_job(workspace, "evaluate-2")
    content, words = BROKEN[name]
    path = workspace.job("evaluate-2") / "results" / "evaluation.json"
    path.parent.mkdir()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    report = catalog.ingest(workspace)
    assert len(report.problems) == 1
    assert "evaluate-2" in report.problems[0]
    assert words in report.problems[0]
    assert len(catalog.evaluations(workspace)) == 1
    add_evaluation(workspace, "evaluate-2", "b")
    assert catalog.ingest(workspace).problems == []
    assert len(catalog.evaluations(workspace)) == 2


def test_scores_that_do_not_fit_their_queries_are_refused(workspace: Workspace) -> None:
    add_evaluation(workspace, "evaluate-1", "a", per_query={"query_ids": ["q1", "q2"], "ndcg@10": [0.5]})
    add_evaluation(workspace, "evaluate-2", "a", measures={"ndcg@10": float("nan")})
    problems = catalog.ingest(workspace).problems
    assert "2 query ids but 1 values" in problems[0]
    assert "not a number" in problems[1]
    assert catalog.evaluations(workspace) == []


def test_an_empty_workspace_has_an_empty_catalogue(workspace: Workspace) -> None:
    assert asdict(catalog.ingest(workspace)) == {"read": 0, "problems": []}
    assert catalog.evaluations(workspace) == []


@pytest.mark.slow
def test_many_results_and_scores(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond one batch: evaluations with 250 queries each and two measures. Full batches take seconds to fill."""
    count = 1200 if SOAK else 120
    if not SOAK:
        monkeypatch.setattr(import_module("cdp.catalog.ingest"), "BATCH_FILES", 100)
    values = {f"query-{n}": n / 250 for n in range(250)}
    for n in range(count):
        add_evaluation(workspace, f"evaluate-{n:04d}", f"r{n % 20}", f"b{n % 5}", values)
    assert catalog.ingest(workspace).read == count
    assert catalog.query(workspace, "SELECT count(*), sum(value) FROM scores WHERE measure = 'ndcg@10'").rows == [
        (250 * count, pytest.approx(count * sum(values.values())))
    ]
    assert len(catalog.evaluations(workspace)) == count


@pytest.mark.parametrize("sql", ["UPDATE version SET hash = 'other'", "DROP TABLE version"])
def test_a_catalogue_of_another_version_is_rebuilt(workspace: Workspace, sql: str) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    catalog.ingest(workspace)
    with duckdb.connect(str(workspace.catalog)) as connection:
        connection.execute(sql)
        connection.execute(
            "INSERT INTO trainings (source, id) VALUES ('jobs/deleted/results/training.json', 'deleted')"
        )
    assert [row["id"] for row in catalog.evaluations(workspace)] == ["evaluate-1"]
    assert catalog.trainings(workspace) == []
