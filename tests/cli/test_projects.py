"""``projects …`` and ``--project``: lists show what is the project's, options are filled in, what is added joins it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.services import projects
from tests.cli.support import answer, refusal, run

pytestmark = pytest.mark.slow


@pytest.fixture
def filled(with_demo: Workspace, tmp_path: Path) -> Workspace:
    """The demo, and a corpus in no project."""
    path = tmp_path / "tides.jsonl"
    path.write_text('{"_id": "t1", "text": "The tide comes in twice a day."}\n', encoding="utf-8")
    run("corpus", "add", str(path))
    return with_demo


def test_a_project_is_listed_shown_and_removed(filled: Workspace) -> None:
    assert [(p["name"], p["implied"]) for p in answer("projects", "list")] == [("tides", True), ("demo", False)]
    projects.create(filled, "Sea", corpora=["tides", "demo"], benchmarks=["demo"])
    shown = answer("projects", "show", "Sea")
    assert (shown["id"], shown["benchmarks"]) == ("sea", ["demo"])
    assert len(shown["corpora"]) == len(shown["query_sets"]) == 2
    assert answer("projects", "delete", "sea")["deleted"]
    assert [p["name"] for p in answer("projects", "list")] == ["tides", "demo"]
    assert "Sea" not in run("projects", "list").stdout


def test_lists_show_what_is_the_projects(filled: Workspace) -> None:
    assert [c["name"] for c in answer("corpus", "list", "--project", "demo")] == ["demo"]
    assert answer("queries", "list", "--project", "tides") == []
    assert len(answer("queries", "list")) == 2
    run("projects", "use", "tides")
    done = run("queries", "list")
    assert "No query set yet" in done.stdout
    assert "project tides; everything: --project all" in done.stderr
    assert len(answer("corpus", "list", "--project", "all")) == 2
    run("projects", "use", "all")
    assert len(answer("corpus", "list")) == 2


def test_what_is_left_out_is_the_projects_only_one(filled: Workspace) -> None:
    assert "lighthouse" in run("queries", "preview", "--project", "demo", "--doc", "lighthouse").stdout
    assert "has 2: " in refusal("train", "--project", "demo")
    assert "has none" in refusal("train", "--project", "tides")
    assert "required: --corpus" in refusal("queries", "preview")
    assert "No project is called 'sae'" in refusal("corpus", "list", "--project", "sae")


def test_what_is_added_joins_it(filled: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "more.jsonl"
    path.write_text('{"_id": "m1", "text": "Ebb and flood."}\n', encoding="utf-8")
    run("corpus", "add", str(path), "--project", "demo")
    assert len(answer("projects", "show", "demo")["corpora"]) == 2
    assert [p["name"] for p in answer("projects", "list")] == ["tides", "demo"]


def test_the_one_import(workspace: Workspace, tmp_path: Path) -> None:
    lines = [
        f"{i},Lighthouse {i} was built in {1800 + i} on the northern coast.,When was {i} built?" for i in range(20)
    ]
    path = tmp_path / "faq.csv"
    path.write_text("\n".join(["number,what it says,question", *lines, "20,,?"]) + "\n", encoding="utf-8")
    done = answer("projects", "add", str(path), "--id-field", "number", "--set", "held_out=0.5", "--set", "seed=3")
    assert (done["id"], done["left_out"]) == ("faq", {"rows not taken (empty text)": 1})
    assert (done["benchmark"]["n_queries"], done["query_sets"][0]["n_queries"]) == (10, 10)
    assert (
        "missing: No judged queries"
        in run("projects", "add", str(path), "--name", "bare", "--set", "with_queries=no").stdout
    )
    assert "There is no field 'inhalt'" in refusal("projects", "add", str(path), "--text-field", "inhalt")
