"""What services read: evaluations, per-query scores, comparisons with a baseline, and questions in SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp import catalog
from cdp.errors import InputError, NotFoundError
from cdp.workspace import Workspace
from tests.catalog.support import add_evaluation


def test_an_evaluation_comes_back_as_it_was_written(workspace: Workspace) -> None:
    written = add_evaluation(workspace, "evaluate-1", "static-minilm")
    (row,) = catalog.evaluations(workspace)
    assert row["measures"] == written["measures"]
    assert row["ndcg@10"] == written["measures"]["ndcg@10"]
    assert (row["id"], row["job_id"]) == ("evaluate-1", "evaluate-1")
    assert (row["retriever_id"], row["retriever_name"]) == ("static-minilm", "STATIC-MINILM")
    assert (row["benchmark"], row["split"], row["protocol"]) == ("scifact", "test", "published")
    assert row["settings"] == {"batch_size": 128}
    scores = catalog.per_query(workspace, ["evaluate-1"])["evaluate-1"]
    assert scores == dict(zip(written["per_query"]["query_ids"], written["per_query"]["ndcg@10"], strict=True))


def test_unknown_evaluations_and_measures_are_named(workspace: Workspace) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    with pytest.raises(NotFoundError, match="evaluate-9"):
        catalog.per_query(workspace, ["evaluate-9"])
    with pytest.raises(InputError, match="mrr"):
        catalog.per_query(workspace, ["evaluate-1"], "mrr@10")


def test_the_newest_result_comes_first(workspace: Workspace) -> None:
    for day in (3, 1, 2):
        add_evaluation(workspace, f"evaluate-{day}", "a", created=f"2026-01-0{day}T00:00:00+00:00")
    assert [row["id"] for row in catalog.evaluations(workspace)] == ["evaluate-3", "evaluate-2", "evaluate-1"]


@pytest.fixture
def compared(workspace: Workspace) -> Workspace:
    add_evaluation(workspace, "base-old", "base", values={"q1": 0.0, "q2": 0.0}, created="2026-01-01")
    add_evaluation(workspace, "base-new", "base", values={"q1": 0.5, "q2": 0.5, "q3": 0.5}, created="2026-01-02")
    add_evaluation(workspace, "ours", "ours", values={"q1": 1.0, "q2": 0.25, "q3": 0.5, "q4": 1.0})
    add_evaluation(workspace, "elsewhere", "ours", "nfcorpus")
    add_evaluation(workspace, "paper", "ours", protocol="paper")
    changed = {"name": "scifact", "split": "test", "hash": "b2"}
    add_evaluation(workspace, "other-judgments", "ours", benchmark=changed)
    return workspace


@pytest.mark.parametrize("baseline", ["base", "base-new", "BASE"])
def test_compare_over_common_queries(compared: Workspace, baseline: str) -> None:
    rows = {row["id"]: row for row in catalog.compare(compared, baseline)}
    ours = rows["ours"]
    assert ours["baseline_id"] == "base-new"
    assert ours["difference"] == pytest.approx((0.5 - 0.25 + 0.0) / 3)
    assert (ours["n_common"], ours["wins"], ours["losses"], ours["ties"]) == (3, 1, 1, 1)
    assert (ours["value"], ours["baseline_value"]) == (pytest.approx(2.75 / 4), 0.5)
    assert rows["base-new"]["difference"] == 0.0


def test_what_cannot_be_compared_says_so(compared: Workspace) -> None:
    rows = {row["id"]: row for row in catalog.compare(compared, "base")}
    for row_id in ("elsewhere", "paper", "other-judgments"):
        assert rows[row_id]["baseline_id"] is None
        assert rows[row_id]["difference"] is None
        assert rows[row_id]["value"] is not None
    with pytest.raises(NotFoundError, match="nobody"):
        catalog.compare(compared, "nobody")


def test_compare_chosen_evaluations_and_another_baseline_run(compared: Workspace) -> None:
    (row,) = catalog.compare(compared, "base-old", ["ours"])
    assert (row["id"], row["baseline_id"], row["n_common"]) == ("ours", "base-old", 2)
    (row,) = catalog.compare(compared, "base", ["ours"], measure="recall@100")
    assert (row["value"], row["ties"]) == (0.5, 3)


def test_a_question_in_sql(workspace: Workspace) -> None:
    add_evaluation(workspace, "evaluate-1", "a", values={"q1": 0.25})
    answer = catalog.query(workspace, "SELECT id, \"ndcg@10\", measures['recall@100'] AS r FROM evaluations")
    assert (answer.columns, answer.rows, answer.truncated) == (
        ["id", "ndcg@10", "r"],
        [("evaluate-1", 0.25, 0.5)],
        False,
    )
    assert catalog.query(workspace, "SHOW TABLES").rows
    assert catalog.query(workspace, "WITH x AS (SELECT 1 AS a) FROM x;").rows == [(1,)]
    many = catalog.query(workspace, "SELECT * FROM range(100)", limit=10)
    assert (len(many.rows), many.truncated) == (10, True)


FORBIDDEN = [
    "DELETE FROM scores",
    "INSERT INTO notes VALUES ('a', 'b')",
    "CREATE TABLE x (a INTEGER)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "DROP TABLE scores",
    "ATTACH 'other.duckdb'",
    "SET threads = 1",
    "PRAGMA enable_profiling",
    "INSTALL httpfs",
    "CHECKPOINT",
    "SELECT 1; SELECT 2",
    "",
    "SELEC 1",
    "SELECT nothing FROM nowhere",
    "SELECT * FROM read_text('SECRET')",
    "SELECT * FROM read_csv('SECRET')",
    "SELECT * FROM 'SECRET'",
    "SELECT * FROM glob('SECRET*')",
    "COPY scores TO 'SECRET.csv'",
    "EXPORT DATABASE 'SECRET-folder'",
    "SELECT cast('x' AS INTEGER)",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_nothing_is_written_and_no_other_file_is_read(workspace: Workspace, tmp_path: Path, sql: str) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    secret = tmp_path / "secret.csv"
    secret.write_text("hidden\n1\n")
    with pytest.raises(InputError) as caught:
        catalog.query(workspace, sql.replace("SECRET", str(secret)))
    assert "\n" not in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv", "workspace"]
    assert len(catalog.evaluations(workspace)) == 1


def test_a_question_without_end_is_ended(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="longer than"):
        catalog.query(workspace, "SELECT count(*) FROM range(10000000) a, range(10000000) b", timeout_s=0.3)
    assert catalog.query(workspace, "SELECT 1").rows == [(1,)]
