"""Back never shows one corpus's or project's name over another's figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.services import corpora, projects
from tests.browser.conftest import Looker, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_back_over_a_change_of_project(
    serve: Callable[..., Server], look: Callable[..., Looker], tmp_path: Path
) -> None:
    """The project in the menu, the one in the head, and the documents are always of the same one."""
    workspace = Workspace(tmp_path / "w")
    for name, n in (("small", 3), ("large", 7)):
        path = tmp_path / f"{name}.jsonl"
        rows = [{"_id": f"{name}{i}", "text": f"Mill {i} of {name} grinds corn."} for i in range(n)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        projects.create(workspace, f"mills {name}", corpora=[corpora.add(workspace, path).corpus.id])
    sizes = {"small": "3", "large": "7"}
    tab = look(serve(workspace=workspace)).open("documents?project=mills-small")

    def check() -> str:
        tab.see("Median length")
        corpus = tab.chosen("Corpus")
        metric = tab.page.get_by_test_id("stMetric").filter(has_text="Documents")
        assert metric.get_by_test_id("stMetricValue").inner_text() == sizes[corpus]
        assert tab.chosen("Project") == f"mills {corpus}"
        assert tab.page.get_by_test_id("stMain").get_by_text(f"mills {corpus}", exact=True).count() == 1
        return str(corpus)

    assert check() == "small"
    tab.page.locator("input[aria-label='Project']").click()
    tab.page.get_by_role("option", name="mills large", exact=True).click()
    tab.idle()
    assert check() == "large"
    tab.menu("Queries").see("repeat each other less")
    tab.page.reload()
    tab.see("repeat each other less")
    tab.page.go_back()
    tab.page.wait_for_timeout(700)
    tab.idle()
    assert check() == "large"
    tab.page.go_back()
    tab.page.wait_for_timeout(700)
    tab.idle()
    assert check() == "small"
