"""A workspace on a read-only disk: everything can be looked at, and what would write says why it does not."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.cli import main
from cdp.services import demo, queries
from tests.catalog.support import add_evaluation
from tests.jobs.support import until
from tests.pages.support import ended_job

pytestmark = pytest.mark.slow


@pytest.fixture
def frozen(small: Workspace) -> Workspace:
    """The demo, a result and a job that has ended, on a disk that became read-only; the catalogue was never made."""
    demo.load(small)
    add_evaluation(small, "evaluate-1", "a")
    ended_job(small, "train-1", "training", {})
    for folder in small.queries.iterdir():
        for kept in (folder / "measures").glob("*"):
            kept.unlink()
    remount = ["mount", "-o", "remount,ro", str(small.root.parent)]
    until(
        lambda: subprocess.run(remount, check=False, capture_output=True).returncode == 0, "nobody to write there", 20
    )
    assert not os.access(small.root, os.W_OK)
    return small


def test_everything_can_be_looked_at_and_what_would_write_says_why_not(
    frozen: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query_set = queries.list_query_sets(frozen)[0].id
    for command in (
        ("results", "list"), ("results", "compare", "--baseline", "a"), ("metrics", query_set, "--quick"),
        ("jobs", "list"), ("corpus", "list"), ("queries", "list"), ("queries", "show", query_set),
        ("cw", "profile", query_set), ("catalog", "query", "SELECT count(*) AS n FROM evaluations"),
        ("benchmarks", "list"), ("search", "bees", "--retriever", "bm25", "--corpus", "demo"),
        ("search", "bees", "--retriever", "static-minilm", "--corpus", "demo"),
    ):  # fmt: skip
        code = main([*command, "--json"])
        shown = capsys.readouterr()
        assert code == 0, (command, shown.err)
        assert json.loads(shown.out), command

    source = tmp_path / "more.jsonl"
    source.write_text('{"_id": "x", "text": "something new"}\n', encoding="utf-8")
    for command in (
        ("corpus", "add", str(source)), ("queries", "import", str(source), "--corpus", "demo"),
        ("queries", "delete", query_set), ("train", query_set), ("evaluate", "bm25", "--benchmark", "demo"),
        ("benchmarks", "add", str(demo.FOLDER), "--name", "again"), ("catalog", "rebuild"),
    ):  # fmt: skip
        code = main([*command])
        shown = capsys.readouterr()
        if command[0] == "catalog":
            continue  # it is rebuilt beside the workspace
        assert code == 2, (command, shown)
        assert "read-only" in shown.err.lower(), shown.err
        assert shown.err.count("\n") == 1
