"""A newcomer's way through the dashboard: upload, preview, queries, metrics, recommendation, training, comparison."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from cdp.base.workspace import SHIPPED_DATA
from cdp.results import board
from cdp.services import corpora, jobs, queries
from tests.browser.conftest import Looker, Server
from tests.jobs.support import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DEMO = SHIPPED_DATA / "demo"


@pytest.mark.soak
def test_the_whole_way(serve: Callable[..., Server], look: Callable[..., Looker]) -> None:
    server = serve()
    workspace = server.workspace
    tab = look(server).open().see("First the documents")
    tab.shot("1-overview-empty")

    tab.press("More ways to add them", role="link").see("No documents yet")
    tab.upload(DEMO / "corpus.jsonl").press("Import documents").see("was added")
    (corpus,) = corpora.list_corpora(workspace)
    assert corpus.n_documents == 96
    assert f"corpus={corpus.id}" in tab.page.url
    tab.shot("2-corpus")

    tab.press("See queries for these documents").see("repeat each other less")
    expect(tab.page.get_by_test_id("stMain").locator("ol")).to_have_count(2)
    tab.shot("3-preview")

    tab.idle().press("Start writing queries")
    # The word alone may stand elsewhere on the page before the job has begun.
    until(lambda: any(made.complete for made in queries.list_query_sets(workspace)), "the queries to be written", 120)
    tab.see("finished", seconds=60)
    (query_set,) = queries.list_query_sets(workspace)
    assert query_set.n_documents == 96
    assert 470 <= query_set.n_queries <= 480  # five per document, fewer where a text is too short for five templates
    tab.shot("4-writing-done")

    tab.menu("Queries").page.get_by_role("tab", name="Quality and diversity").click()
    tab.see("Measure with models")
    tab.shot("5-quality-and-diversity")

    tab.menu("Decide").page.get_by_role("tab", name="By content words").click()
    lines = (DEMO / "queries.jsonl").read_text(encoding="utf-8").splitlines()[:60]
    tab.type("Target queries, one per line", "\n".join(line.split('"text": "')[1].rstrip('"}') for line in lines))
    tab.see("Published rule:").see("Limits of the rule")
    tab.shot("6-recommendation")

    tab.menu("Benchmarks").page.get_by_text("Add your own benchmark").click()
    tab.idle().page.get_by_test_id("stMain").get_by_text("Path on this server").first.click()
    tab.idle().type("File or folder on this server", "data/demo").press("Add benchmark").see("is added")
    tab.menu("Launch").see("demo · test", seconds=60)
    tab.shot("7-launch")

    tab.press("Start training").see("finished", seconds=240)
    tab.shot("8-training-done")
    for view in jobs.list_jobs(workspace):
        assert jobs.wait(workspace, view.id).state == "finished", view.failure

    tab.menu("Compare").see("gains", seconds=60).page.get_by_role("tab", name="Per query").wait_for()
    rows = board.list_evaluations(workspace)
    assert {row["benchmark"] for row in rows} == {"demo"}
    assert len(rows) == 3  # BM25 among them
    tab.page.get_by_role("tab", name="Export").click()
    tab.idle()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="CSV with all tests").click()
    assert "difference" in download.value.path().read_text(encoding="utf-8").splitlines()[0]
    tab.shot("9-compare")
    assert "Traceback" not in server.console()
    assert "Warning" not in server.console()
