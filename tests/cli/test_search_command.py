"""``search``: an answer in the command's own process, none left behind; or by the search process where one is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdp.base.workspace import Workspace
from cdp.cli.declare import find
from cdp.serving import client, engine
from tests.cli.support import run
from tests.support import stop_search

# A first search loads the stemmer's library for a second.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jobs_here")]


@pytest.fixture(autouse=True)
def loaded(with_demo: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(client.RUNTIME, str(tmp_path / "run"))
    yield
    stop_search(with_demo)


def test_one_off_leaves_no_process(workspace: Workspace) -> None:
    done = run(
        "search", "how do honeybees find flowers", "--retriever", "bm25", "--corpus", "demo", "-k", "3", "--json"
    )
    value = json.loads(done.stdout)
    assert [hit["rank"] for hit in value["answers"][0]["hits"]] == [1, 2, 3]
    assert value["answers"][0]["problem"] is None
    assert not stop_search(workspace)


def test_what_cannot_be_searched_is_said(workspace: Workspace) -> None:
    done = run("search", " ", "--retriever", "bm25", "--corpus", "demo", code=2)
    assert done.stderr == "cdp: The query is empty. Type a few words or a question.\n"
    assert "no-such" in run("search", "x", "--retriever", "bm25", "--corpus", "no-such", code=2).stderr
    done = run("search", "bees", "--retriever", "bm25", "--retriever", "no-such!", "--corpus", "demo", code=1)
    assert "BM25 (" in done.stdout
    assert "No preset" in done.stdout
    done = run("search", "bees", "--retriever", "no-such!", "--corpus", "demo", code=2)
    assert done.stderr.startswith("cdp: No preset")
    assert done.stderr.count("\n") == 1


def typed(*words: str) -> dict[str, Any]:
    """What the command line makes of these words."""
    found = find(list(words))
    assert not isinstance(found, int)
    return found[0].read(found[1])


def test_a_query_may_begin_with_a_dash() -> None:
    options = ("--retriever", "bm25", "--corpus", "demo")
    assert typed("search", *options, "--", "-5 degrees")["query"] == "-5 degrees"
    misspelt = run("search", "--inedx", "x", *options, code=2)
    assert "Did you mean --index" in misspelt.stderr


def test_a_job_indexes_where_it_takes_long(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("search", "honeybees", "--retriever", "bm25", "--corpus", "demo")
    run(*words)
    monkeypatch.setattr(engine, "LEXICAL_AT_ONCE", 10)
    for path in workspace.embeddings.glob("bm25-*"):
        path.rename(path.with_name(f"gone-{path.name}"))
    assert "Add --index" in run(*words, code=2).stderr
    assert "Honeybee" in run(*words, "--index").stdout
    assert list(workspace.embeddings.glob("bm25-*"))
