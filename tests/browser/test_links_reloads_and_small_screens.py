"""What a person may do to a page: open a link on a fresh server, reload, go back, use the dark, a phone, two tabs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace
from cdp.services import corpora, jobs, queries, training
from cdp.services.corpora import ReadOptions
from tests.browser.conftest import Looker, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Serve = Callable[..., Server]
Look = Callable[..., Looker]


def test_the_first_link_on_a_fresh_server_opens_what_it_names(serve: Serve, look: Look) -> None:
    server = serve(with_demo=True)
    chosen = queries.list_query_sets(server.workspace)[-1]
    tab = look(server).open(f"launch?query_set={chosen.id}").see("What will happen")
    assert tab.page.get_by_text("Page not found").count() == 0
    assert tab.chosen("Query set").startswith(chosen.name)


def test_one_press_leaves_a_page_that_was_visited_first(demo_server: Server, look: Look) -> None:
    tab = look(demo_server).open().see("Trained retrievers")
    tab.menu("Queries").see("repeat each other less")
    tab.page.go_back()
    tab.see("Trained retrievers")
    assert tab.page.url == f"{demo_server.url}/"


def test_selections_survive_a_change_of_page_and_a_reload(demo_server: Server, look: Look) -> None:
    corpus = corpora.list_corpora(demo_server.workspace)[0]
    tab = look(demo_server).open(f"queries?corpus={corpus.id}&document=tides").see("repeat each other less")
    tab.menu("Decide").see("Your answer")
    tab.menu("Queries").see("repeat each other less")
    assert "document=tides" in tab.page.url
    tab.page.reload()
    tab.see("repeat each other less")
    assert tab.chosen("Document") == "Tides (tides)"


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
    assert "Traceback" not in server.console()


def test_on_a_phone_the_menu_opens_and_closes(demo_server: Server, look: Look) -> None:
    tab = look(demo_server, width=390, height=844).open()
    expand = tab.page.get_by_test_id("stExpandSidebarButton")
    expand.click()
    tab.menu("Documents").see("Median length")
    assert expand.count() == 0, "Streamlit leaves the menu open over the page that was chosen"
    menu = tab.page.get_by_test_id("stSidebarCollapseButton")
    menu.hover()
    menu.get_by_role("button").click()
    expand.wait_for(state="visible")
    assert tab.page.get_by_role("heading", level=1, name="Documents").is_visible()


def test_names_made_of_markup_are_shown_as_they_are_written(serve: Serve, look: Look, workspace: Workspace) -> None:
    source = workspace.root.parent / "markup.jsonl"
    title = "<b id='evil'>bold</b> **strong** $x^2$ :red[hot] :material/home: <img src=x onerror=alert(1)>"
    text = "A text about tides, <script>alert(2)</script> and the Moon."
    source.write_text(json.dumps({"_id": "1", "title": title, "text": text}) + "\n", encoding="utf-8")
    added = corpora.add(workspace, source, name=title, options=ReadOptions()).corpus
    tab = look(serve(workspace=workspace))
    asked: list[str] = []
    tab.page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    tab.open(f"queries?corpus={added.id}")
    main = tab.page.get_by_test_id("stMain")
    assert main.locator("#evil, .katex, img[src=x]").count() == 0
    tab.page.get_by_text("Document text", exact=True).click()
    shown = main.inner_text().replace("\u2060", "")
    assert title in shown
    assert "<script>alert(2)</script>" in shown
    assert asked == []
