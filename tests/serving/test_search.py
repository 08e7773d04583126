"""Search over HTTP gives what ``cdp search`` gives, one query or many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from cdp.base.workspace import Workspace
from cdp.services import search as service
from cdp.serving.public import Serving
from tests.cli.support import answer as command
from tests.serving.support import error_of, serving
from tests.support_models import tiny_multi_vector, tiny_sparse

pytestmark = pytest.mark.slow

CLIENT = httpx.Client(timeout=30)  # each new one reads the system's certificates
QUERIES = ["how do honeybees find flowers", "who invented paper?", "zzzz qqqq", "the origin of money"]


def hits(value: dict[str, object]) -> list[tuple[object, ...]]:
    return [(hit["rank"], hit["id"], hit["score"], hit["title"]) for hit in value["hits"]]  # type: ignore[attr-defined, index]


def expected(workspace: Workspace, retriever: str, query: str, k: int) -> list[tuple[object, ...]]:
    [given] = service.search(workspace, query, [retriever], "demo", k, in_process=True).answers
    assert given.problem is None
    return [(hit.rank, hit.id, hit.score, hit.title) for hit in given.hits]


def test_the_same_documents_and_scores_as_the_command(
    server: Serving, static_model: Path, demo_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_WORKSPACE", str(demo_workspace.root))
    words = ("search", QUERIES[0], "--retriever", str(static_model), "--corpus", "demo", "-k", "5")
    of_command = command(*words)["answers"][0]
    one = CLIENT.post(f"{server.address}/v1/search", json={"query": QUERIES[0], "top_k": 5}).json()
    assert hits(one["data"][0]) == hits(of_command)
    assert one["corpus"]["documents"] == 96
    assert one["data"][0]["hits"][0]["text"] == of_command["hits"][0]["text"][:300]
    many = CLIENT.post(f"{server.address}/v1/search", json={"query": QUERIES, "top_k": 3, "text_characters": 0}).json()
    assert [row["index"] for row in many["data"]] == [0, 1, 2, 3]
    for query, row in zip(QUERIES, many["data"], strict=True):
        assert hits(row) == expected(demo_workspace, str(static_model), query, 3)
        assert {hit["text"] for hit in row["hits"]} == {""}


@pytest.mark.parametrize("make", [None, tiny_sparse, tiny_multi_vector], ids=["bm25", "sparse", "multi-vector"])
def test_what_gives_no_single_vectors_searches(make: Any, demo_workspace: Workspace, tmp_path: Path) -> None:
    retriever = "bm25" if make is None else str(make(tmp_path))
    name = Path(retriever).name
    with serving(demo_workspace, retriever, corpus="demo") as server:
        many = CLIENT.post(f"{server.address}/v1/search", json={"query": QUERIES}).json()
        for query, row in zip(QUERIES, many["data"], strict=True):
            assert hits(row) == expected(demo_workspace, retriever, query, 10)
        if make is None:
            assert many["data"][2]["hits"] == [], "no document shares a word with it"
        assert [model["id"] for model in CLIENT.get(f"{server.address}/v1/models").json()["data"]] == [name]
        answer = CLIENT.post(f"{server.address}/v1/embeddings", json={"model": name, "input": "a"})
        assert (answer.status_code, error_of(answer)["code"]) == (400, "no_embeddings")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_value"),
        ({"query": " \0 "}, "invalid_value"),
        ({"query": "a" * 10_001}, "invalid_value"),
        ({"query": ["a", " "]}, "invalid_value"),
        ({"query": []}, "invalid_value"),
        ({"query": "a", "top_k": 101}, "invalid_value"),
        ({"query": "a", "top_k": "5"}, "invalid_value"),
        ({"query": "a", "text_characters": 20_001}, "invalid_value"),
        ({"query": ["a"] * 600, "top_k": 100}, "answer_too_large"),
        ({"query": ["a"] * 2049}, "invalid_value"),
        ({"query": "a", "corpus": "other"}, "invalid_value"),
        ({"query": "a", "retriever": "minilm"}, "invalid_value"),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_searches_that_are_refused(server: Serving, body: dict[str, object], code: str) -> None:
    answer = CLIENT.post(f"{server.address}/v1/search", json=body)
    assert (answer.status_code, error_of(answer)["code"]) == (400, code)


def test_without_a_corpus_there_is_no_search(static_model: Path, demo_workspace: Workspace) -> None:
    with serving(demo_workspace, str(static_model)) as server:
        answer = CLIENT.post(f"{server.address}/v1/search", json={"query": "bees"})
        assert (answer.status_code, error_of(answer)["code"]) == (400, "no_corpus")
        described = CLIENT.get(f"{server.address}/v1/models").json()["data"][0]
        assert (described["id"], described["dimensions"]) == ("model", 16), "the folder's last part, not its path"
