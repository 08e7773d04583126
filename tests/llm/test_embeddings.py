"""Embedding endpoints as they are: orders and forms of vectors, limits, and a text on which the server fails."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp.base.errors import ProviderError
from cdp.base.workspace import Workspace, write_json
from cdp.corpus import read_documents, store
from cdp.llm.answers import Usage, read_embeddings
from cdp.llm.cache import AnswerCache
from cdp.llm.refusals import Learnt
from cdp.retrievers import api, load, resolve
from cdp.retrievers.api import ApiModel, Payer
from tests.endpoint_situations import REFUSED
from tests.jobs.support import run_worker
from tests.synthesis.conftest import _no_keys, _short_backoff, server
from tests.synthesis.server import BAD_VECTOR, KEY, MODEL, ChatServer, embedding

__all__ = ["_no_keys", "_short_backoff", "server"]
pytestmark = pytest.mark.slow

TEXTS = [f"text {i} of many" for i in range(100)]
EXPECTED = np.array([embedding(text) for text in TEXTS], np.float32)
Rows = list[dict[str, Any]]


@pytest.fixture
def make(workspace: Workspace, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[], ApiModel]:
    monkeypatch.setenv("CDP_BASE_URL", server.url)
    monkeypatch.setenv("CDP_API_KEY", KEY)
    write_json(workspace.job("job") / "spec.json", {})

    def opened() -> ApiModel:
        found = load(resolve(f"api:{MODEL}", workspace), payer=Payer(workspace, "job"))
        assert isinstance(found, ApiModel)
        return found

    return opened


def _without(data: Rows, *which: int) -> Rows:
    return [{k: v for k, v in row.items() if k != "index" or row["index"] not in which} for row in data]


def _packed(data: Rows) -> Rows:
    return [{**row, "embedding": base64.b64encode(np.array(row["embedding"], "<f4")).decode()} for row in data]


SHAPES: dict[str, Callable[[Rows], Any]] = {
    "in order": lambda data: data,
    "in another order": lambda data: data[::-1],
    "without the index 0": lambda data: _without(data, 0),  # samfoy/pi-session-search#13, Gemini
    "without the index 0, in another order": lambda data: _without(data, 0)[::-1],
    "without an index": lambda data: _without(data, *range(len(data))),  # doobidoo/mcp-memory-service#612
    "every index 0": lambda data: [{**row, "index": 0} for row in data],
    "index null": lambda data: [{**row, "index": row["index"] or None} for row in data],
    "base64": _packed,  # llama.cpp and others answer so to float
}


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0, "total_tokens": 0}, {"prompt_tokens": "7"}])
def test_a_count_of_no_tokens_is_a_missing_one(usage: Any) -> None:
    body = json.dumps({"data": [{"embedding": [1.0], "index": 0}], "usage": usage}).encode()
    assert read_embeddings(body, 1, Usage(12)).usage == Usage(12, 0, 1, 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_vectors_come_in_any_order_and_form(make: Callable[[], ApiModel], server: ChatServer, shape: str) -> None:
    server.shape = SHAPES[shape]
    assert np.array_equal(make().encode_document(TEXTS[:40]), EXPECTED[:40])
    assert np.array_equal(make().encode_query(["one alone"]), [embedding("one alone")])
    assert set(server.embedded.values()) == {1}


@pytest.mark.parametrize("shape", [lambda data: data[:1], lambda data: [*data, data[0]], lambda data: data[1:]])
def test_a_wrong_count_is_said_and_ends_it(
    make: Callable[[], ApiModel], server: ChatServer, shape: Callable[[Rows], Any]
) -> None:
    server.shape = shape
    with pytest.raises(ProviderError, match=r"does not hold one vector for each of 32 texts.*batch_size=1"):
        make().encode_document(TEXTS)


@pytest.mark.parametrize("name", [name for name, row in REFUSED.items() if row.refuses == "texts"])
def test_a_limit_of_texts_is_learnt_once(
    make: Callable[[], ApiModel], server: ChatServer, name: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(api, "BATCH", 200)
    limit = REFUSED[name].limit
    assert limit is not None
    texts = TEXTS * 3 + [f"more {i}" for i in range(200)]
    server.habits = [f"refused: {name}"]
    vectors = make().encode_document(texts, batch_size=200)
    assert np.array_equal(vectors[:100], EXPECTED)
    assert server.faults[f"refused: {name}"] == 1
    assert set(server.embedded.values()) == {1}
    assert f"at most {limit} texts a request" in capsys.readouterr().err
    make().encode_document([f"even more {i}" for i in range(200)], batch_size=200)
    assert server.faults[f"refused: {name}"] == 1, "a resumed job knows it"
    assert json.loads((workspace.job("job") / Learnt.FILE).read_text())[f"{MODEL} at {server.url}"]["texts"] == limit


def test_the_batch_size_that_is_set_is_obeyed(make: Callable[[], ApiModel], server: ChatServer) -> None:
    make().encode_document(TEXTS, batch_size=8)
    assert {len(body["input"]) for body in server.bodies} == {8, 4}


def test_a_refused_encoding_format_is_left_out(make: Callable[[], ApiModel], server: ChatServer) -> None:
    server.habits = ["refused: LiteLLM: encoding_format"]
    assert np.array_equal(make().encode_document(TEXTS), EXPECTED)
    make().encode_document(["another"])
    assert ["encoding_format" in body for body in server.bodies] == [True] + [False] * 5
    assert server.faults["refused: LiteLLM: encoding_format"] == 1


BAD = [*BAD_VECTOR, "not refused: Ollama: NaN", "refused: SiliconFlow: 512 tokens", "words: plain text"]


@pytest.mark.parametrize("bad", BAD)
def test_one_bad_text_costs_itself_alone(
    make: Callable[[], ApiModel], server: ChatServer, workspace: Workspace, bad: str
) -> None:
    server.per_text = {"37": bad}
    model = make()
    vectors = model.encode_document(TEXTS)
    assert list(model.failed) == ["text 37 of many"]
    assert not vectors[37].any()
    kept = [i for i in range(100) if i != 37]
    assert np.array_equal(vectors[kept], EXPECTED[kept])
    assert max(n for text, n in server.embedded.items() if text != "text 37 of many") == 1, "none is paid for twice"
    with AnswerCache(workspace) as cache:
        assert len(cache) == 99
    asked = len(server.bodies)
    server.per_text = {}
    assert np.array_equal(make().encode_document(TEXTS), EXPECTED)
    assert [body["input"] for body in server.bodies[asked:]] == [["text 37 of many"]], "it alone is asked for again"


def test_the_refusal_of_a_long_text_says_its_limit(make: Callable[[], ApiModel], server: ChatServer) -> None:
    server.per_text = {"1": "refused: llama.cpp: 512 tokens"}
    model = make()
    model.encode_document(TEXTS[:4])
    reason = str(model.failed["text 1 of many"])
    assert "at most 512 tokens" in reason
    assert "max_length" in reason
    assert len(server.bodies) == 5, "a refusal that no wait changes is not repeated: 4, 2, 1, 1 and 2 texts"


def test_the_only_text_of_a_call_is_one_failed_text_too(make: Callable[[], ApiModel], server: ChatServer) -> None:
    """A corpus of 1,025 documents is encoded in calls of 1,024 and one."""
    server.per_text = {"bad": "not refused: Ollama: NaN"}
    model = make()
    with pytest.raises(ProviderError, match="unsupported value: NaN"):
        model.encode_document(["a bad text"])  # of a server that embedded nothing yet
    model.encode_document(["a text"])
    assert not model.encode_document(["a bad text"]).any()
    assert list(model.failed) == ["a bad text"]
    server.per_text = {}
    assert model.encode_document(["a bad text"]).any()
    assert not model.failed


@pytest.mark.parametrize("bad", ["NaN", "words: plain text", "not refused: Ollama: NaN"])
def test_a_server_that_embeds_nothing_ends_the_run_soon(
    make: Callable[[], ApiModel], server: ChatServer, bad: str
) -> None:
    server.per_text = {"many": bad}
    with pytest.raises(ProviderError, match="texts in a row were not embedded"):
        make().encode_document(TEXTS * 5)
    assert len(server.bodies) < 150


@pytest.mark.soak
def test_over_five_kills_it_learns_once_and_pays_for_lost_requests_alone(
    workspace: Workspace, server: ChatServer, make: Callable[[], ApiModel], tmp_path: Path
) -> None:
    """A limit of 10 texts, and a document that the server cannot embed."""
    n = 300
    path = tmp_path / "many.jsonl"
    rows = [{"_id": f"d{i}", "text": f"document {i} is about thing {i % 7}"} for i in range(n)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with read_documents(path) as result:
        corpus = store(result, "many", workspace)
    server.latency, server.habits = 0.1, ["refused: DashScope: 10 texts"]
    server.per_text = {"137": "not refused: Ollama: NaN"}
    folder = workspace.job("index-1")
    settings = {"retriever": f"api:{MODEL}@{server.url}", "corpus": corpus.id}
    write_json(folder / "spec.json", {"id": "index-1", "kind": "index", "config": settings})
    lost = 0
    for target in (3, 8, 13, 18, 23, None):
        code, out = run_worker("cdp.workers.index", folder, lambda: len(server.bodies), target)
        time.sleep(0.2)  # the server ends what was asked
        if target is None:
            assert code == 0, out
            continue
        with AnswerCache(workspace) as cache:
            lost += cache._read("SELECT count(*) FROM asked")[0][0]
    assert server.faults["refused: DashScope: 10 texts"] == 1
    assert len(server.embedded) == n  # of 299 documents and the query that warms the index
    assert sum(server.embedded.values()) - n <= 10 * lost
    assert lost <= 5 * api.CONCURRENCY
    [failure] = [json.loads(line) for line in (folder / "failures.jsonl").read_text().splitlines()]
    assert (failure["document_id"], failure["stage"]) == ("d137", "embedding document")
    assert json.loads((folder / "outcome.json").read_text())["failures"] == 1
