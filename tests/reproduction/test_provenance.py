"""Who wrote the queries of each stored study: as the manifests say, never a setting's default."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.workspace import Workspace, read_json
from tests.cli.support import answer, run
from tests.support import REPOSITORY

REPORTS = sorted((REPOSITORY / "docs" / "reproduction").glob("*-*.json"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_stored_report_names_the_writers_and_no_model_that_wrote_nothing(path: Path) -> None:
    report = read_json(path)["report"]
    config = report["config"]
    assert report["sources"]
    assert all(source["written_by"] for source in report["sources"])
    if not config["methods"]:
        assert {source["written_by"] for source in report["sources"]} == {"people"}
        assert "generator" not in config
    if config.get("generator") != "openai":
        assert "model" not in config
    if config.get("generator") == "recorded":
        assert all("whose name was not recorded" in source["written_by"] for source in report["sources"])


def test_a_written_set_says_who_wrote_it(workspace: Workspace) -> None:
    """Through the command line: the manifest of recorded queries, and how it is shown."""
    answer("demo")
    written = {q["generator"]: q["id"] for q in answer("queries", "list")}
    manifest = read_json(workspace.query_set(written["recorded"]) / "manifest.json")
    assert (manifest["kind"], manifest["model"]) == ("synthetic", "not recorded")
    shown = run("queries", "show", written["recorded"]).stdout
    assert "written by: a language model whose name was not recorded, ahead of time" in shown
