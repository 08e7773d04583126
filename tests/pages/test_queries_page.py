"""The Queries page: methods side by side, what they cost before and after, prices, exports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdp import cli, query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.workspace import Workspace
from cdp.corpus import load_manifest, looking
from cdp.llm.prices import Price, dollars
from cdp.services import corpora, jobs, queries
from cdp.synthesis import pricing
from tests.pages.conftest import Open
from tests.pages.test_every_page_in_every_state import words
from tests.support import write_prices
from tests.synthesis.server import KEY, MODEL, ChatServer, chat_server


@pytest.fixture
def endpoint() -> Iterator[ChatServer]:
    with chat_server() as server:
        yield server


def priced(workspace: Workspace) -> None:
    write_prices(workspace, [Price(MODEL, 1.0, 4.0)], "2026-02-03")


def lists(at: object) -> list[str]:
    return [m.value for m in at.markdown if m.value.startswith("1. ")]  # type: ignore[attr-defined]


def test_any_methods_stand_side_by_side_and_reasoning_shows_what_it_thought_through(
    open_page: Open, filled: Workspace
) -> None:
    at = open_page("queries", document="lighthouse")
    at.segmented_control(key="generate_generator").set_value("template")
    at.multiselect(key="preview_methods").set_value(["diverse", "sap", "reasoning"]).run()
    assert not at.exception
    assert len(lists(at)) == 3
    assert all("CW" in text for text in lists(at))
    assert "from: " in lists(at)[2]
    at.multiselect(key="preview_methods").set_value(["dragon_s_paper"]).run()
    said = [box.value.replace("\\", "") for box in at.info]
    assert any("46.8" in text and "7.83" in text for text in said), said
    at.multiselect(key="preview_methods").set_value([]).run()
    assert not at.exception
    assert lists(at) == []


def test_a_method_for_several_documents_is_previewed_on_demand_and_asks_once_for_each_group(
    open_page: Open, filled: Workspace
) -> None:
    at = open_page("queries", document="lighthouse")
    at.segmented_control(key="generate_generator").set_value("template").run()
    at.multiselect(key="preview_methods").set_value(["multi_document"]).run()
    assert lists(at) == [], "the corpus is ranked when the button is pressed"
    at.segmented_control(key="generate_generator").set_value("openai").run()
    offered = at.segmented_control(key="generate_method").options
    assert len(offered) == 4, "three methods, and More"
    at.segmented_control(key="generate_method").set_value("more").run()
    at.selectbox(key="generate_other_method").set_value("multi_document").run()
    assert not at.exception
    requests = next(m.value for m in at.metric if m.label == "Requests")
    assert int(requests) == -(-load_manifest(filled, filled_corpus(filled)).n_documents // 2)


def filled_corpus(workspace: Workspace) -> str:
    return queries.list_query_sets(workspace)[0].corpus_id


@pytest.mark.parametrize("query", ["", "?api-version=2025-04-01-preview"])
def test_a_preview_of_an_endpoint_is_priced(
    open_page: Open, filled: Workspace, endpoint: ChatServer, query: str
) -> None:
    priced(filled)
    at = open_page("queries")
    at.segmented_control(key="generate_generator").set_value("openai").run()
    at.text_input(key="generate_base_url").set_value(f"{endpoint.url}{query}")
    at.text_input(key="generate_model").set_value(MODEL)
    at.text_input(key="generate_api_key").set_value(KEY).run()
    assert not endpoint.bodies, "it is asked when the button is pressed"
    at.button(key="preview_ask").click().run(timeout=60)
    assert not at.exception
    assert not at.error
    assert set(endpoint.paths) == {f"/v1/chat/completions{query}"}
    config = SynthesisConfig(corpus="demo", generator="openai", model=MODEL, base_url=endpoint.url)
    expected = pricing.estimate(filled, config)
    shown = [(metric.label, metric.value) for metric in at.metric]
    assert ("Cost", dollars(expected.cost)) in shown
    assert [label for label, _ in shown].count("This preview") == 2
    assert KEY not in repr([m.value for m in at.markdown]) + repr([c.value for c in at.code])


def test_cost_afterwards_stands_beside_its_estimate(
    open_page: Open,
    filled: Workspace,
    endpoint: ChatServer,
    capsys: pytest.CaptureFixture[str],
    in_process: Callable[[], list[str]],
) -> None:
    """One connection is lost on the way: the endpoint may have charged for it, and the job says so."""
    priced(filled)
    endpoint.script = ["reset"]
    config = SynthesisConfig(
        corpus="demo", generator="openai", model=MODEL, base_url=endpoint.url, per_doc=2, limit=4, concurrency=2
    )
    job = jobs.start(filled, "synthesis", config, api_key=KEY)
    assert in_process() == [job]
    made = next(q for q in queries.list_query_sets(filled) if q.job_id == job)
    bill = pricing.bill_of_job(filled, made.job_id)
    assert bill is not None
    assert bill.cost == pytest.approx((bill.usage.input_tokens * 1.0 + bill.usage.output_tokens * 4.0) / 1e6)
    assert bill.expected == pytest.approx(pricing.estimate(filled, config).cost)
    assert bill.price_as_of == "2026-02-03"
    assert bill.unanswered.startswith("1 request got no answer")
    at = open_page("jobs", job=job)
    shown = [c.value.replace("\\", "") for c in at.caption]
    assert any(bill.told in text.replace("\u2060", "") for text in shown), shown
    assert any("1 request got no answer" in text for text in shown), shown
    assert cli.main(["jobs", "show", job]) == 0
    told = capsys.readouterr().out
    assert bill.told in told
    assert bill.unanswered in told


def test_queries_are_imported_from_the_columns_that_are_chosen(
    open_page: Open, filled: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "asked.csv"
    rows = ["not this,lighthouse,who keeps the lamp?,good", "not this,lighthouse,who sells bread?,no"]
    path.write_text("\n".join(["text,Passage_No,ask,verdict", *rows]).replace("good", "yes"), encoding="utf-8")
    at = open_page("queries")
    at.segmented_control(key="queries_way").set_value("Path on this server").run()
    at.text_input(key="queries_path").set_value(str(path)).run()
    boxes = {box.label: box for box in at.selectbox}
    assert [boxes[name].value for name in ("Queries", "Document ID", "Grade")] == ["text", "none", "none"]
    for name, column in (("Queries", "ask"), ("Document ID", "Passage_No"), ("Grade", "verdict")):
        {box.label: box for box in at.selectbox}[name].set_value(column).run()
    assert any("yes is 1, no is 0" in caption.value for caption in at.caption)
    at.button(key="queries_add").click().run()
    assert not at.exception
    assert not at.error
    imported = next(q for q in queries.list_query_sets(filled) if q.name == "asked")
    assert queries.page(filled, imported.id) == [("lighthouse", ["who keeps the lamp?"])]
    said = at.success[0].value.replace("\\", "")
    assert "1 row judged not relevant" in said
    assert "Columns that were not taken: text." in said


def test_columns_of_a_table_without_a_header_are_chosen_by_their_numbers(
    open_page: Open, filled: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "predicted.tsv"
    path.write_text("lighthouse\twho keeps the lamp?\nbakery\twho sells bread?\n", encoding="utf-8")
    at = open_page("queries")
    at.segmented_control(key="queries_way").set_value("Path on this server").run()
    at.checkbox(key="queries_read_header").uncheck().run()
    at.text_input(key="queries_path").set_value(str(path)).run()
    for name, column in (("Queries", "2"), ("Document ID", "1")):
        {box.label: box for box in at.selectbox}[name].set_value(column).run()
    at.button(key="queries_add").click().run()
    assert not at.exception
    assert not at.error
    imported = next(q for q in queries.list_query_sets(filled) if q.name == "predicted")
    assert ("lighthouse", ["who keeps the lamp?"]) in queries.page(filled, imported.id)


def test_what_people_wrote_stands_beside_the_methods_with_content_words_in_bold(
    filled: Workspace, open_page: Open, tmp_path: Path
) -> None:
    corpus = corpora.list_corpora(filled)[0]
    document = looking.page(filled, corpus.id, 0, 1)[0]
    asked = tmp_path / "asked.jsonl"
    asked.write_text(json.dumps({"document_id": document.id, "query": "why does the amber tide turn"}) + "\n")
    made = queries.import_file(filled, asked, corpus.id, name="asked").query_set
    query_sets.update(filled, made.id, kind="human")
    at = open_page("queries", document=document.id)
    said = words(at)
    assert "#### Written by people" in said
    assert "why does the **amber** **tide** **turn**" in said
