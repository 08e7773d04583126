"""What a person may do to a page: reload, go back, change the project, use a phone, two tabs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cdp.base.config import EvaluationConfig, TrainingConfig
from cdp.services import corpora, jobs, training
from tests.browser.conftest import MARKUP, MILLS, Looker, Server
from tests.jobs.support import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Serve = Callable[..., Server]
Look = Callable[..., Looker]


def test_selections_survive_a_change_of_page_and_a_reload_and_back_goes_over_a_change_of_project(
    full_server: Server, look: Look
) -> None:
    corpus = next(c for c in corpora.list_corpora(full_server.workspace) if c.name == "demo")
    tab = look(full_server).open(f"queries?corpus={corpus.id}&document=tides").see("repeat each other less")
    tab.menu("Jobs").menu("Queries").see("repeat each other less")
    assert "document=tides" in tab.page.url
    tab.page.reload()
    tab.see("repeat each other less")
    assert tab.chosen("Document") == "Tides (tides)"
    tab.page.go_back()  # one press leaves a page, however often it was drawn
    tab.page.get_by_role("heading", level=1, name="Jobs").wait_for()

    # The project in the menu, the one in the head, and the documents are always of the same one.
    def check() -> str:
        tab.see("Median length")
        corpus = tab.chosen("Corpus")
        metric = tab.page.get_by_test_id("stMetric").filter(has_text="Documents")
        assert metric.get_by_test_id("stMetricValue").inner_text() == str(MILLS[corpus])
        assert tab.chosen("Project") == f"mills {corpus}"
        assert tab.page.get_by_test_id("stMain").get_by_text(f"mills {corpus}", exact=True).count() == 1
        return str(corpus)

    def choose(project: str) -> None:
        tab.page.mouse.move(640, 0)  # the tooltip of the menu's link would cover the box
        tab.page.locator("input[aria-label='Project']").click()
        tab.page.get_by_role("option", name=project, exact=True).click()
        tab.idle()

    tab.menu("Documents")
    choose("mills small")
    assert check() == "small"
    choose("mills large")
    assert check() == "large"
    tab.menu("Queries")
    for name in ("large", "small"):
        tab.page.go_back()
        tab.page.wait_for_timeout(700)
        tab.idle()
        assert check() == name


@pytest.mark.soak
def test_a_training_goes_on_through_a_reload_and_in_two_tabs(serve: Serve, look: Look) -> None:
    server = serve(with_demo=True)
    config = TrainingConfig.from_dict({"query_set": "demo diverse", "epochs": 200})
    job = training.start(server.workspace, config).job_id
    first = look(server).open(f"jobs?job={job}").see("running", seconds=90)
    second = look(server).open(f"jobs?job={job}").see("running", seconds=90)
    first.page.reload()
    first.see("loss (InfoNCE)", seconds=90).shot("training-live")
    first.press("Stop").page.wait_for_timeout(5000)
    first.confirm("Stop the job")
    first.see("stopped", seconds=90)
    second.see("stopped", seconds=30).see("Resume")
    assert jobs.show(server.workspace, job).state == "stopped"

    # Resumed in the other tab: a reload of the first follows it, and it goes on where it was.
    reached = max(jobs.curve(server.workspace, job, "loss"))
    second.press("Resume")
    second.see("attempt 2", seconds=90)
    first.page.reload()
    first.see("attempt 2", seconds=90)
    until(lambda: max(jobs.curve(server.workspace, job, "loss")) > reached, "the training to go on")
    first.menu("Documents").page.get_by_test_id("stSidebar").get_by_text("1 running").wait_for(timeout=60_000)
    jobs.stop(server.workspace, job)
    second.see("stopped", seconds=60)

    # A job that ends while the tab is in the background: its title says so until the person comes back.
    config = EvaluationConfig(retriever="bm25", benchmark="demo", split="test")
    short = jobs.start(server.workspace, "evaluation", config)
    first.menu("Queries")
    until(lambda: not jobs.show(server.workspace, short).active, "the evaluation")
    first.page.wait_for_function("document.title.startsWith('✓ 1 finished')", timeout=30_000)
    assert first.page.locator("link[rel='icon'], link[rel='shortcut icon']").first.get_attribute("href")
    first.page.mouse.move(640, 0)  # the tooltip of the menu's link would cover the next
    first.menu("Documents").page.wait_for_function("document.title === 'CDP Studio'", timeout=30_000)
    assert "Traceback" not in server.console()


def test_on_a_phone_the_menu_closes_and_markup_is_shown_as_it_is_written(full_server: Server, look: Look) -> None:
    tab = look(full_server, width=390, height=844)
    asked: list[str] = []
    tab.page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    corpus = next(c for c in corpora.list_corpora(full_server.workspace) if c.name == MARKUP)
    tab.open(f"queries?corpus={corpus.id}")
    main = tab.page.get_by_test_id("stMain")
    assert main.locator("#evil, .katex, img[src=x]").count() == 0
    tab.page.get_by_text("Document text", exact=True).click()
    shown = main.inner_text().replace("\u2060", "")
    assert "bold **strong** $x^2$ :red[hot] :material/home:" in shown  # the import takes the HTML out of titles
    assert "<script>alert(2)</script>" in shown
    assert asked == []

    expand = tab.page.get_by_test_id("stExpandSidebarButton")
    expand.click()
    tab.menu("Documents").see("Median length")
    assert expand.count() == 0, "Streamlit leaves the menu open over the page that was chosen"
    menu = tab.page.get_by_test_id("stSidebarCollapseButton")
    menu.hover()
    menu.get_by_role("button").click()
    expand.wait_for(state="visible")
    assert tab.page.get_by_role("heading", level=1, name="Documents").is_visible()
