"""Decide's answer fits the screen, and three clicks lead from it to the training that it names, compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from cdp.base.workspace import Workspace
from cdp.services import jobs, results
from tests.browser.conftest import Looker, Server
from tests.services.test_decide import diverse_helps, run_study, sets_of, task

__all__ = ["task"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHONE = {"width": 390, "height": 844}


def height(page: Page) -> int:
    return int(page.get_by_test_id("stMain").evaluate("main => main.scrollHeight"))


def test_the_answer_fits_and_is_followed(
    workspace: Workspace,
    task: dict[str, str],
    serve: Callable[..., Server],
    look: Callable[..., Looker],
    tmp_path: Path,
) -> None:
    run_study(workspace, sets_of(task), diverse_helps)
    server = serve(workspace=workspace)
    tab = look(server)
    tab.page.set_viewport_size({"width": 1440, "height": 900})
    tab.open(f"decide?corpus={task['corpus']}&target_benchmark=tales").see("Write 5 different queries per document")
    assert height(tab.page) <= 2 * 900
    tab.shot("12-answer")
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Export").first.click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert "Write 5 different queries per document" in text
    assert "decide --benchmark tales" in text
    tab.page.set_viewport_size(PHONE)
    tab.idle()
    box = tab.page.locator(".st-key-decision h2").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= PHONE["height"]
    tab.shot("13-answer-on-a-phone")
    tab.page.set_viewport_size({"width": 1440, "height": 900})
    tab.presses = 0
    tab.press("Train this").see("Start training")
    main = tab.page.get_by_test_id("stMain")
    expect(main.get_by_label("Q/Doc", exact=True).first).to_have_value("5")  # drawn empty, filled a moment later
    assert f"query_set={task['diverse']}" in tab.page.url
    assert "retriever=static-minilm" in tab.page.url
    tab.press("Start training").see("Compare results", seconds=240)
    tab.press("Compare results").see("Paired t-test over", seconds=60)
    assert tab.presses == 3
    (trained,) = jobs.list_jobs(workspace, ["training"])
    assert f"run={trained.id}" in tab.page.url
    rows = {row.kind for row in results.list_rows(workspace, results.list_evaluations(workspace))}
    assert rows >= {results.TRAINING, results.UNTRAINED, results.BM25}
    tab.shot("14-compared")
