"""A retriever behind an embeddings endpoint: its name, its vectors, what goes wrong, and that nothing is paid twice."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np
import pytest

from cdp.base.errors import CdpError, ConfigError, ModelError, ProviderError, RefusedError
from cdp.base.worker import Stopped
from cdp.base.workspace import Workspace, write_json
from cdp.corpus import read_documents, store
from cdp.llm.address import OPENAI_URL
from cdp.llm.answers import Usage
from cdp.llm.cache import AnswerCache
from cdp.llm.prices import Price
from cdp.retrievers import api, load, model_hash, resolve
from cdp.retrievers.api import ApiModel, Payer
from tests.jobs.support import run_worker
from tests.support import write_prices
from tests.synthesis.conftest import _no_keys, _short_backoff, server
from tests.synthesis.server import KEY, LOST, MODEL, NO_VECTORS, ChatServer, embedding

pytestmark = pytest.mark.slow

__all__ = ["_no_keys", "_short_backoff", "server"]

# Faults of a single vector: the others of its request are kept.
ONE_TEXT = ("not finite", "too large", "nothing in it")


@pytest.fixture
def model(workspace: Workspace, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ApiModel:
    monkeypatch.setenv("CDP_BASE_URL", server.url)
    monkeypatch.setenv("CDP_API_KEY", KEY)
    return opened(workspace)


def opened(workspace: Workspace, *, budget: float | None = None, max_length: int | None = None) -> ApiModel:
    found = load(resolve(f"api:{MODEL}", workspace), max_length=max_length, payer=Payer(workspace, "job", budget))
    assert isinstance(found, ApiModel)
    return found


@pytest.mark.parametrize(
    ("name", "model", "url"),
    [
        ("api:text-embedding-3-small", "text-embedding-3-small", OPENAI_URL),
        (" api:BAAI/bge-m3@http://localhost:8000/v1/ ", "BAAI/bge-m3", "http://localhost:8000/v1"),
        ("api:bge-m3:latest@https://host/v1", "bge-m3:latest", "https://host/v1"),
        ("api:embed@001", "embed@001", OPENAI_URL),
    ],
)
def test_a_name_says_model_and_address(workspace: Workspace, name: str, model: str, url: str) -> None:
    found = api.parse(name)
    assert found is not None
    assert (found.model, found.url) == (model, url)
    assert resolve(name, workspace).name == found.name == f"api:{model}@{url}"
    assert api.parse(found.name) == found


@pytest.mark.parametrize(
    "name", ["api:", "api:a b", "api:a,b", "api:m@http://user:pass@host/v1", "api:m@https://h/?k=1"]
)
def test_a_name_holds_no_key_and_no_list(name: str) -> None:
    with pytest.raises(ConfigError):
        api.parse(name)


def test_other_names_are_not_of_an_api() -> None:
    assert not any(map(api.parse, ("minilm", "bm25", "bm25:fr", "api", "apis/model", "./api:x")))


def test_each_text_gets_its_vector_once(workspace: Workspace, model: ApiModel, server: ChatServer) -> None:
    texts = [f"text {i} of many" for i in range(100)] + ["", "text 3 of many", "  "]
    vectors = model.encode_document(texts, prompt="", batch_size=128)
    assert vectors.shape == (103, 32)
    assert vectors.dtype == np.float32
    expected = np.array([embedding(text) for text in texts], np.float32)
    assert np.array_equal(vectors, expected), "in order, though the server answers in another"
    assert set(server.embedded.values()) == {1}
    assert len(server.bodies) == math.ceil(101 / api.BATCH)
    asked = len(server.bodies)
    again = opened(workspace).encode_query([*texts[::-1], "a new one"])
    assert np.array_equal(again[:-1], vectors[::-1])
    assert [body["input"] for body in server.bodies[asked:]] == [["a new one"]]
    with AnswerCache(workspace) as cache:
        assert cache.spent(f"job/api:{MODEL}@{server.url}").requests == asked + 1


def test_texts_are_cut_at_the_length_that_is_set(workspace: Workspace, model: ApiModel, server: ChatServer) -> None:
    sentence = "Ten words are in this sentence, and it ends here. "
    opened(workspace, max_length=64).encode_document([sentence * 20, "\ud83d half"])
    cut, other = sorted(server.bodies[0]["input"], key=len, reverse=True)
    assert cut == (sentence * 5).strip()
    assert other == "? half"
    assert model.max_seq_length == api.LONGEST


def test_the_hash_is_of_model_and_address(workspace: Workspace) -> None:
    names = ("api:a@http://x/v1", "api:a@http://y/v1", "api:b@http://x/v1", "api:a@http://x/v1/")
    hashes = [model_hash(load(resolve(name, workspace), payer=Payer(workspace, "job"))) for name in names]
    assert len(set(hashes)) == 3
    assert hashes[0] == hashes[3]


@pytest.mark.parametrize("fault", NO_VECTORS)
def test_vectors_are_checked(workspace: Workspace, model: ApiModel, server: ChatServer, fault: str) -> None:
    server.script = [fault]
    texts = ["one text", "another text"]
    assert model.encode_document(texts).shape == (2, 32), "one more try, or one text without a vector"
    assert list(model.failed) == (["one text"] if fault in ONE_TEXT else [])
    server.script = [fault, fault]
    if fault in ONE_TEXT:
        assert not model.encode_document(["a third"]).any()
        assert "gave no vector" in str(model.failed["a third"])
    else:
        with pytest.raises(ProviderError, match="cannot be used"):
            model.encode_document(["a third", "a fourth"])
    with AnswerCache(workspace) as cache:
        assert len(cache) == (1 if fault in ONE_TEXT else 2)
        spent = cache.spent(f"job/api:{MODEL}@{server.url}").requests
        assert spent == (3 if fault in ONE_TEXT else 4), "what cannot be used is paid for too"


@pytest.mark.parametrize("fault", ["429", "500", *LOST])
def test_what_passes_is_tried_again(
    workspace: Workspace, model: ApiModel, server: ChatServer, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "TIMEOUT_S", 0.5)
    server.hang = 1.0
    assert model.encode_document(["a text to begin with"]).shape == (1, 32)
    server.script = [fault, fault]
    assert np.array_equal(model.encode_document(["one text"]), [embedding("one text")])


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("400", ProviderError, "max_length"),
        ("quota", RefusedError, "credit"),
        ("html", ProviderError, "makes embeddings"),
    ],
)
def test_what_does_not_pass_says_what_to_do(
    model: ApiModel, server: ChatServer, fault: str, error: type[CdpError], words: str
) -> None:
    server.script = [fault] * 2
    with pytest.raises(error) as raised:
        model.encode_document(["one text"])
    assert words in str(raised.value)
    assert KEY not in str(raised.value)
    server.script.clear()
    assert model.encode_document(["one text"]).shape == (1, 32), "the next call connects again"


def test_a_missing_count_of_tokens_is_estimated(workspace: Workspace, model: ApiModel, server: ChatServer) -> None:
    server.script = ["no usage"]
    model.encode_document(["sixteen letters!"])
    with AnswerCache(workspace) as cache:
        assert cache.spent(f"job/api:{MODEL}@{server.url}") == Usage(4, 0, 1, estimated=1)


def test_another_model_under_the_same_name_is_noticed(
    workspace: Workspace, model: ApiModel, server: ChatServer
) -> None:
    model.encode_document(["one text"])
    server.embedding = lambda text: embedding(text, 16)
    for reader in (model, opened(workspace)):
        with pytest.raises(ModelError, match="dimensions"):
            reader.encode_document(["one text", "another text"])


def test_a_budget_is_respected_over_attempts(workspace: Workspace, model: ApiModel, server: ChatServer) -> None:
    texts = [f"text {i} with a few more words than that" for i in range(1000)]
    with pytest.raises(ConfigError, match="no price"):
        opened(workspace, budget=1.0)
    write_prices(workspace, [Price(MODEL, 1000.0, 0.0)], "2026-01-01")
    per_request = sum(len(text) // 4 for text in texts[-api.BATCH :]) / 1000
    budget = 10.5 * per_request
    with pytest.raises(ConfigError, match="used up"):
        opened(workspace, budget=budget).encode_document(texts)
    payer = Payer(workspace, "job", budget)
    spent = payer.cost([f"api:{MODEL}", "bm25"])
    assert budget - 1.5 * per_request < spent <= budget + per_request
    paid = set(server.embedded)
    with pytest.raises(ConfigError, match="used up"):
        opened(workspace, budget=budget).encode_document(texts)
    assert sum(server.embedded.values()) <= len(paid) + api.BATCH
    assert len(opened(workspace, budget=100 * budget).encode_document(texts)) == 1000
    assert set(server.embedded.values()) == {1}


def test_a_stop_ends_it(workspace: Workspace, model: ApiModel, server: ChatServer) -> None:
    server.latency = 0.2
    stopping = ApiModel(model.name, Payer(workspace, "job", should_stop=lambda: len(server.bodies) > 8))
    with pytest.raises(Stopped):
        stopping.encode_document([f"text {i}" for i in range(32 * 40)])
    assert len(server.bodies) < 40
    with AnswerCache(workspace) as cache:
        assert len(cache) == sum(server.embedded.values()), "answers that were on their way are kept"


def test_without_a_payer_it_is_not_loaded(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match="cannot be trained or loaded"):
        load(resolve("api:m", workspace))


@pytest.mark.soak
def test_killed_and_resumed_it_pays_for_no_stored_vector_again(
    workspace: Workspace, tmp_path: Path, model: ApiModel, server: ChatServer
) -> None:
    n = 2000
    path = tmp_path / "many.jsonl"
    rows = [{"_id": f"d{i}", "text": f"document {i} is about thing {i % 7}"} for i in range(n)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with read_documents(path) as result:
        corpus = store(result, "many", workspace)
    server.latency = 0.15
    folder = workspace.job("index-1")
    settings = {"retriever": model.name.name, "corpus": corpus.id}
    write_json(folder / "spec.json", {"id": "index-1", "kind": "index", "config": settings})
    for target in (5, 20, 35, None):
        with AnswerCache(workspace) as cache:
            kept, before = len(cache), sum(server.embedded.values())
        code, out = run_worker("cdp.workers.index", folder, lambda: len(server.bodies), target)
        time.sleep(0.3)  # the server ends what was asked
        if target is None:
            assert code == 0, out
            assert sum(server.embedded.values()) - before == n - kept + 1  # the first query warms the index
    assert kept > 500
    with AnswerCache(workspace) as cache:
        assert len(cache) == n + 1
        spent = cache.spent(f"index-1/{model.name.name}")
    assert spent.unanswered <= 3 * api.CONCURRENCY
