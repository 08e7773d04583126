"""Deriving benchmarks on the page: what would come of it is shown first, and read-only dashboards can only look."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from cdp.base.workspace import Workspace
from cdp.benchmarks import library
from cdp.services.sharing import modes
from tests.pages.conftest import Open
from tests.pages.test_every_page_in_every_state import words


def previewed(at: AppTest) -> dict[str, list[object]]:
    """The table of what would be made, by column."""
    (table,) = [d.value for d in at.dataframe if list(d.value.columns) == ["Benchmark", "Queries", "CW"]]
    return {column: table[column].tolist() for column in table.columns}


def test_parts_are_previewed_then_made_as_previewed(open_page: Open, filled: Workspace) -> None:
    at = open_page("benchmarks")
    before = library.list_names(filled)
    at.selectbox(key="derive_split_demo").set_value("test").run()
    at.text_input(key="derive_bounds_cw").set_value("5, 7").run()
    at.button(key="derive_preview").click().run()
    shown = previewed(at)
    assert shown["Benchmark"] == ["demo-cw-0to4", "demo-cw-5to6", "demo-cw-from7"]
    assert [cw < 5 for cw in shown["CW"]] == [True, False, False]  # type: ignore[operator]
    assert library.list_names(filled) == before
    at.button(key="derive_make").click().run()
    assert not at.exception
    made = {name: library.describe(filled.benchmark(name), filled) for name in library.list_names(filled)}
    assert [made[str(name)].n_queries for name in shown["Benchmark"]] == shown["Queries"]
    assert at.success[0].proto.title.replace("\\", "") == "3 benchmarks added."
    at.button(key="derive_make").click().run()
    assert at.success[0].proto.title.replace("\\", "") == "0 benchmarks added, 3 already in the workspace."


def test_conjunctions_are_previewed_and_made(open_page: Open, filled: Workspace) -> None:
    at = open_page("benchmarks")
    at.selectbox(key="derive_split_demo").set_value("test").run()
    at.segmented_control(key="derive_way").set_value("conjunctions").run()
    at.number_input(key="derive_queries").set_value(20).run()
    at.button(key="derive_preview").click().run()
    shown = previewed(at)
    assert shown["Benchmark"] == ["demo-and2-20q"]
    assert shown["Queries"] == [20]
    assert "queries are in none of them" in words(at)
    at.button(key="derive_make").click().run()
    assert "demo-and2-20q" in library.list_names(filled)


def test_what_gives_no_parts_is_said_in_one_box(open_page: Open, filled: Workspace) -> None:
    before = library.list_names(filled)
    at = open_page("benchmarks")
    for bounds, says in (
        ("six", "does not say where parts begin"),
        ("9 6", "The edges must ascend"),
        ("900", "not told apart by"),
    ):
        at.text_input(key="derive_bounds_cw").set_value(bounds).run()
        for press in ("derive_preview", "derive_make"):
            at.button(key=press).click().run()
            assert not at.exception
            (box,) = at.error
            assert says in box.proto.title.replace("\\", "")
            assert "-at" not in box.value.replace("\u2060", "").replace("\\", "")  # the page has no options
    assert library.list_names(filled) == before


def test_a_read_only_dashboard_previews_and_makes_nothing(
    open_page: Open, filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(modes.READ_ONLY, "1")
    at = open_page("benchmarks")
    at.button(key="derive_preview").click().run()
    assert len(previewed(at)["Benchmark"]) > 1
    assert at.button(key="derive_make").disabled


def test_without_a_benchmark_there_is_nothing_to_derive(open_page: Open, workspace: Workspace) -> None:
    at = open_page("benchmarks")
    assert not [button for button in at.button if button.key == "derive_make"]
