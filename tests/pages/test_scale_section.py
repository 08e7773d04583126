"""Launch: planning a run of any size."""

from __future__ import annotations

import pytest

from cdp.base.workspace import Workspace
from cdp.services import planning
from cdp.services.planning import machine
from cdp.services.sharing import modes
from tests.pages.conftest import Open


def test_a_run_is_planned_before_there_is_anything(open_page: Open, workspace: Workspace) -> None:
    at = open_page("launch", start="scale")
    at.text_input(key="scale_documents").set_value("8.8M").run()
    assert not at.exception
    table = at.dataframe[0].value
    assert list(table["Stage"])[:2] == ["Reading documents", "Writing queries"]
    assert table["Rate"][0] == "unknown"
    assert any("8.8 million documents" in m.value.replace("\\", "") for m in at.markdown)
    at.text_input(key="scale_documents").set_value("8.8X").run()
    assert not at.exception
    assert any("80k" in box.value for box in at.error)


def test_the_corpus_of_the_project_is_planned_for_until_another_number_is_typed(
    open_page: Open, filled: Workspace
) -> None:
    at = open_page("launch", start="scale")
    assert at.text_input(key="scale_documents").placeholder == "those of the corpus"
    assert at.text_input(key="scale_corpus").value.startswith("demo-")
    assert any("96 documents" in m.value for m in at.markdown)
    assert not any("$0.00" in cell for cell in at.dataframe[0].value["Money"])


def test_generators_and_retrievers_are_offered(open_page: Open, filled: Workspace) -> None:
    at = open_page("launch", start="scale")
    generator, retriever = at.selectbox(key="scale_generator"), at.selectbox(key="scale_retriever")
    assert (generator.value, retriever.value) == ("template", "static-minilm")
    assert "minilm" in retriever.options
    generator.set_value("openai:gpt-4o-mini").run()
    assert not at.exception
    assert "$" in "".join(at.dataframe[0].value["Money"])


def test_an_empty_price_or_memory_is_not_called_automatic(open_page: Open, workspace: Workspace) -> None:
    at = open_page("launch", start="scale")
    for name in ("dollars_per_hour", "memory_gb"):
        assert at.number_input(key=f"scale_{name}").placeholder == "not counted"


def test_measuring_fills_in_what_was_unknown(
    open_page: Open, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(workspace: Workspace, retriever: str = "") -> None:
        machine.keep(workspace, {"reading": [[1e6, 1.0, None]]})

    monkeypatch.setattr(planning, "measure", measured)
    at = open_page("launch", start="scale")
    at.button(key="scale_measure").click().run()
    assert not at.exception
    assert at.dataframe[0].value["Rate"][0] == "measured here"


def test_a_read_only_dashboard_plans_and_cannot_measure(
    open_page: Open, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(modes.READ_ONLY, "1")
    at = open_page("launch", start="scale")
    assert at.button(key="scale_measure").disabled
    assert len(at.dataframe[0].value) == 7
