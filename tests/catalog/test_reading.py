"""What services read: evaluations, per-query scores, and questions in SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp import catalog
from cdp.base.errors import InputError, NotFoundError
from cdp.base.workspace import Workspace
from tests.catalog.support import add_evaluation

pytestmark = pytest.mark.slow  # to open the catalogue takes longer than to ask it


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
    with pytest.raises(NotFoundError, match="evaluate-9"):
        catalog.per_query(workspace, ["evaluate-9"])
    with pytest.raises(NotFoundError, match="mrr"):
        catalog.per_query(workspace, ["evaluate-1"], "mrr@10")
    for day in (3, 1):  # the newest comes first
        add_evaluation(workspace, f"evaluate-on-{day}", "a", created=f"2026-02-0{day}T00:00:00+00:00")
    listed = [row["id"] for row in catalog.evaluations(workspace)]
    assert listed == ["evaluate-on-3", "evaluate-on-1", "evaluate-1"]


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
    "CREATE TEMP TABLE x AS SELECT 1",
    "ATTACH 'other.duckdb'",
    "SET threads = 1",
    "INSTALL httpfs",
    "SELECT 1; SELECT 2",
    "",
    "SELEC 1",
    "SELECT * FROM read_text('SECRET')",
    "SELECT * FROM 'SECRET'",
    "SELECT * FROM glob('SECRET*')",
    "COPY scores TO 'SECRET.csv'",
    "EXPORT DATABASE 'SECRET-folder'",
    "SELECT cast('x' AS INTEGER)",
]


def test_nothing_is_written_and_no_other_file_is_read(workspace: Workspace, tmp_path: Path) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    secret = tmp_path / "secret.csv"
    secret.write_text("hidden\n1\n")
    for sql in FORBIDDEN:
        with pytest.raises(InputError) as caught:
            catalog.query(workspace, sql.replace("SECRET", str(secret)))
        assert "\n" not in str(caught.value), sql
        assert "hidden" not in str(caught.value), sql
        assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv", "workspace"], sql
    assert catalog.query(workspace, "SELECT count(*) FROM scores").rows == [(40,)]
    assert len(catalog.evaluations(workspace)) == 1


def test_a_question_without_end_is_ended(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="longer than"):
        catalog.query(workspace, "SELECT count(*) FROM range(10000000) a, range(10000000) b", timeout_s=0.1)
    assert catalog.query(workspace, "SELECT 1").rows == [(1,)]
