"""Who wrote a query set: as its manifest says."""

from __future__ import annotations

import pytest

from cdp.base.workspace import Workspace, read_json
from tests.cli.support import answer, run

pytestmark = pytest.mark.slow


def test_a_written_set_says_who_wrote_it(workspace: Workspace) -> None:
    """Through the command line: the manifest of recorded queries, and how it is shown."""
    answer("demo")
    written = {q["generator"]: q["id"] for q in answer("queries", "list")}
    manifest = read_json(workspace.query_set(written["recorded"]) / "manifest.json")
    assert (manifest["kind"], manifest["model"]) == ("synthetic", "not recorded")
    shown = run("queries", "show", written["recorded"]).stdout
    assert "written by: a language model whose name was not recorded, ahead of time" in shown
