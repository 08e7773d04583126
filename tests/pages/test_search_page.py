"""Trying a query: columns side by side, where a result leads, and documents that stay text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.retrievers.api import Payer
from cdp.services import corpora, jobs, search
from cdp.serving import client, engine
from tests.pages.conftest import Open
from tests.pages.test_every_page_in_every_state import words
from tests.synthesis.conftest import _no_keys, _short_backoff, server
from tests.synthesis.server import KEY, MODEL, ChatServer

__all__ = ["_no_keys", "_short_backoff", "server"]


@pytest.fixture(autouse=True)
def answered_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search process's answers, by its engine in this process: tests/serving has the process."""

    def ask(workspace: Workspace, request: Mapping[str, Any]) -> dict[str, Any]:
        made = engine.SearchEngine(workspace, engine.memory_limit(), interactive=True, payer=Payer(workspace, "search"))
        return made.search(**request)

    monkeypatch.setenv(client.RUNTIME, str(tmp_path / "run"))
    monkeypatch.setattr(search, "ask", ask)


def html(at: AppTest) -> str:
    return "\n".join(str(block.proto.body) for block in at.get("html"))


def links(at: AppTest) -> list[str]:
    return [f"{link.proto.page}?{link.proto.query_string}" for link in at.get("page_link")]


def test_a_query_with_two_retrievers(open_page: Open, filled: Workspace) -> None:
    corpus = corpora.list_corpora(filled)[0].id
    query = "how do honeybees find flowers"
    at = open_page("search", q=query, search_with=["bm25", "bm25"], corpus=corpus)
    assert at.text_input(key="query_text").value == query
    assert "<mark>" in html(at)
    assert any("document=" in link and "corpus" in link for link in links(at))
    at.text_input(key="query_text").set_value("a query of nobody's about a furnace").run()
    assert at.query_params["q"] == "a query of nobody's about a furnace"
    assert at.query_params["search_with"]
    assert not at.error
    at.text_input(key="query_text").set_value("").run()
    assert "q" not in at.query_params
    assert "Type a query and press Enter" in words(at)


def test_documents_are_text_and_a_retriever_that_fails_leaves_the_others(
    open_page: Open, workspace: Workspace, tmp_path: Path
) -> None:
    text = "<img src=x onerror=alert(1)> **bold** $x$ :smile: [link](http://example.org) sugar & spice"
    file = tmp_path / "odd.jsonl"
    file.write_text(json.dumps({"_id": "<i>1", "title": "# <b>Title</b> :fire:", "text": text}) + "\n")
    corpus = corpora.add(workspace, file).corpus.id
    at = open_page("search", q="sugar <script>", search_with=["bm25"], corpus=corpus)
    assert "&lt;img src=x onerror=alert(1)&gt;" in html(at)
    assert "<img" not in html(at)
    assert "<mark>sugar</mark> &amp; spice" in html(at)
    assert not [m for m in at.markdown if "<b>" in str(m.value)]
    at = open_page("search", q="sugar", search_with=["bm25", "training-gone"], corpus=corpus)
    assert "training\\-gone" in at.warning[0].value
    assert "<mark>sugar</mark>" in html(at)
    at = open_page("search", q="x" * 20_000, search_with=["bm25"], corpus=corpus)
    assert "20,000 characters" in at.error[0].proto.title


def test_an_index_that_takes_long_is_a_job_that_is_offered(
    open_page: Open, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LEXICAL_AT_ONCE", 10)
    file = tmp_path / "many.jsonl"
    file.write_text("".join(json.dumps({"_id": f"d{i}", "text": f"document number {i}"}) + "\n" for i in range(500)))
    corpus = corpora.add(workspace, file).corpus.id
    at = open_page("search", q="number 7", search_with=["bm25"], corpus=corpus)
    assert "has not indexed 500 documents" in at.info[0].proto.title
    assert at.button(key="index_bm25").label == "Index the documents"  # tests/cli runs such a job
    assert jobs.running(workspace, "index", retriever="bm25", corpus=corpus) is None, "nothing is begun unasked"


def test_a_link_to_a_document_opens_it_and_says_where_it_is_not(open_page: Open, filled: Workspace) -> None:
    corpus = corpora.list_corpora(filled)[0].id
    document = looking.page(filled, corpus)[3]
    at = open_page("documents", corpus=corpus, document=document.id)
    assert document.text in [text.value for text in at.text]
    at = open_page("documents", corpus=corpus, document="no <b>such")
    assert "is not in demo" in at.warning[0].value


def test_a_retriever_behind_an_api_is_added_and_indexed_at_a_price_that_is_said(
    open_page: Open,
    filled: Workspace,
    server: ChatServer,
    in_process: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CDP_BASE_URL", server.url)
    monkeypatch.setenv("CDP_API_KEY", KEY)
    corpus = corpora.list_corpora(filled)[0]
    at = open_page("search", q="sugar", search_with=["bm25"], corpus=corpus.id)
    at.text_input(key="search_api").set_value(f"api:{MODEL}").run()
    assert not at.exception
    assert at.query_params["search_with"] == ["bm25", f"api:{MODEL}"]
    said = at.info[0].value.translate({0x5C: None, 0x2060: None})
    assert f"Up to {corpus.n_documents} texts" in said
    assert f"are sent to {server.url} for {MODEL}: its price is unknown" in said
    assert not server.embedded
    at.button(key=f"index_api:{MODEL}").click().run()
    assert in_process()
    assert len(server.embedded) >= corpus.n_documents
    at.run()
    assert not at.exception
    assert not at.info
    assert words(at).count("score") == 13, "three of BM25, ten of the other"
