"""Four processes import at the same moment: nothing is mixed, everything is whole, and nothing is left behind.

What an import that was killed left goes with the next.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdp.base.locks import PREFIX, staging, try_lock
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, load_benchmark
from cdp.benchmarks.library import list_names
from cdp.corpus import iter_documents, list_corpora, read_documents, store
from cdp.query_sets import iter_lines, list_query_sets
from tests.benchmarks import published
from tests.benchmarks.folders import DOCUMENTS, write_benchmark
from tests.support import REPOSITORY

OF = 4
# More than a buffer of one line, in each process.
EACH = 96


def jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def prepared(tmp_path: Path, workspace: Workspace) -> Path:
    """What the four bring: for each kind one file of its own, and one that all of them bring."""
    jsonl(tmp_path / "corpus.jsonl", [{"_id": f"d{i}", "text": f"document {i}"} for i in range(EACH)])
    with read_documents(tmp_path / "corpus.jsonl") as result:
        store(result, "shared", workspace)
    for number in range(OF):
        rows = [{"document_id": f"d{i}", "query": f"what does {number} ask of {i}?"} for i in range(EACH)]
        jsonl(tmp_path / f"queries-{number}.jsonl", rows)
        rows = [{"_id": f"{number}-{i}", "text": f"document {i} of process {number}"} for i in range(EACH)]
        jsonl(tmp_path / f"documents-{number}.jsonl", rows)
        own = [{**row, "text": f"{row['text']} ({number})"} for row in DOCUMENTS]
        write_benchmark(tmp_path / f"benchmark-{number}", documents=own)
    many = [*DOCUMENTS, *({"_id": f"x{i}", "text": f"another {i}"} for i in range(20))]
    add_benchmark(write_benchmark(tmp_path / "whole", documents=many), workspace, "whole")
    collection, qrels = published.beir_jsonl()
    published.put(tmp_path / "published", {**collection, **qrels})
    (tmp_path / "meeting").mkdir()
    return tmp_path


def left_behind(workspace: Workspace) -> list[str]:
    """Hidden folders with something in them, and files that are no locks: what no import may leave."""
    found = []
    for parent in (workspace.queries, workspace.corpora, workspace.benchmarks, workspace.benchmarks / ".downloads"):
        found += [path.name for path in parent.glob(".*") if path.name not in (".lock", ".info", ".downloads")]
    return [name for name in found if not (name.endswith(".lock") and not name.startswith(PREFIX))]


@pytest.mark.slow
def test_four_at_once_after_one_that_was_killed(prepared: Path, workspace: Workspace) -> None:
    program = [sys.executable, "-m", "tests.faults.importing", str(OF), str(prepared)]
    done = subprocess.run(program, capture_output=True, text=True, cwd=REPOSITORY, timeout=180)
    assert done.returncode == 0, done.stderr
    assert list((prepared / "cut-off").glob(f"{PREFIX}*")), "or it was not killed in the midst of it"
    got: list[dict[str, Any]] = [json.loads((prepared / f"got-{number}.json").read_text()) for number in range(OF)]

    def ids(what: str) -> list[str]:
        assert [g[what] for g in got if isinstance(g[what], dict)] == []
        return [g[what] for g in got]

    sets = {item.id: item for item in list_query_sets(workspace)}
    assert len(sets) == OF + 1, "the one that was cut off is none"
    assert len(set(ids("queries"))) == OF
    for number, name in enumerate(ids("queries")):
        assert (sets[name].complete, sets[name].n_queries, sets[name].n_failures) == (True, EACH, 0)
        lines = [(line["document_id"], line["queries"]) for line in iter_lines(workspace, name)]
        assert lines == [(f"d{i}", [f"what does {number} ask of {i}?"]) for i in range(EACH)]
    assert len(set(ids("same_queries"))) == 1

    assert len(set(ids("corpora"))) == OF
    for number, name in enumerate(ids("corpora")):
        texts = [(d.id, d.text) for d in iter_documents(workspace, name)]
        assert texts == [(f"{number}-{i}", f"document {i} of process {number}") for i in range(EACH)]
    # The first process's documents were stored above, under another name.
    assert set(ids("same_corpus")) == {got[0]["corpora"]}
    assert len(list_corpora(workspace)) == 1 + OF

    winners = [number for number, g in enumerate(got) if g["benchmarks"] == "mine"]
    assert len(winners) == 1, "different benchmarks cannot all have one name"
    losers = [g["benchmarks"]["error"] for number, g in enumerate(got) if number not in winners]
    assert all("another benchmark called 'mine'" in error for error in losers)
    assert all(text.endswith(f"({winners[0]})") for text in load_benchmark(workspace.benchmark("mine")).documents)
    assert set(ids("same_benchmark")) == {"same"}
    assert len(set(ids("subset"))) == 1
    assert load_benchmark(workspace.benchmark(got[0]["subset"])).n_documents == 6

    downloads = [g["download"] for g in got]
    assert {answer for answer in downloads if isinstance(answer, str)} == {"scifact"}
    errors = [answer["error"] for answer in downloads if isinstance(answer, dict)]
    assert all("scifact" in error and "busy" in error for error in errors)

    expected = {"mine", "same", "scifact", "whole", got[0]["subset"]}
    assert set(list_names(workspace)) == expected
    assert left_behind(workspace) == []


def test_only_the_dead_are_cleaned_away(tmp_path: Path) -> None:
    dead, living, unknown = (tmp_path / f"{PREFIX}{name}" for name in ("dead", "living", "unknown"))
    for folder in (dead, living, unknown):
        folder.mkdir()
    dead.with_name(f"{dead.name}.lock").touch()
    lock = try_lock(living.with_name(f"{living.name}.lock"))
    assert lock is not None
    try:
        with staging(tmp_path) as mine:
            assert {living, unknown, mine} == {path for path in tmp_path.iterdir() if path.is_dir()}
    finally:
        os.close(lock)
    assert not mine.exists()
