"""The first run, and what is compared: kept over pages, held in the address."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.services import corpora, queries
from cdp.ui.shell.frame import PAGES
from tests.pages.conftest import Open
from tests.pages.support import evaluated, with_results


def test_the_demo_is_offered_in_an_empty_workspace(open_page: Open, workspace: Workspace) -> None:
    at = open_page("home")
    at.button(key="home_demo").click().run()
    assert not at.exception
    assert len(corpora.list_corpora(workspace)) == 1
    assert any("recorded" in text.value for text in at.markdown), "the demo's answer, marked"
    assert "next_step" not in {button.key for button in at.button}, "one next step, not two"


def test_home_shows_the_latest_results(open_page: Open, filled: Workspace) -> None:
    with_results(filled, queries.list_query_sets(filled)[0].id)
    evaluated(filled, "evaluation-4-dev", "static-minilm", [0.5] * 40, name="Static MiniLM", split="dev")
    at = open_page("home")
    assert [metric.value for metric in at.metric] == ["1", "2", "2", "4"]
    assert "demo dev" in list(at.dataframe[0].value["Benchmark"])


def test_the_filter_comes_from_the_address_and_outlives_a_change_of_page(open_page: Open, filled: Workspace) -> None:
    first, _ = with_results(filled, queries.list_query_sets(filled)[0].id)
    evaluated(filled, "evaluation-4-scifact", first, [0.5] * 20, name="tuned on diverse", benchmark="scifact")
    at = open_page("compare", baseline="static-minilm", benchmark=["demo"])
    table = at.dataframe[0].value
    assert "Coverage" not in table.columns  # both are on the one benchmark that is shown
    assert "scifact" not in table.columns
    at.switch_page(PAGES["documents"].path).run()
    at.switch_page(PAGES["compare"].path).run()
    assert at.query_params["benchmark"] == "demo"


def test_what_stands_behind_a_difference_is_opened_part_by_part(open_page: Open, full: Workspace) -> None:
    at = open_page("compare", baseline="static-minilm")
    assert [tab.label for tab in at.tabs] == ["Per query", "Different settings", "Export"]
    assert at.selectbox(key="choose_per_query").value == "evaluation-2-after"  # what the answer is about
    assert any("Baseline → this" in d.value.columns for d in at.dataframe)
    at.session_state["compare_view"] = "Different settings"
    at.run()
    assert list(at.dataframe[-1].value["Setting"]) == ["Epochs"]
    assert not any("Baseline → this" in d.value.columns for d in at.dataframe)
    assert not at.error
