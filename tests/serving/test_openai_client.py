"""The official openai client against a real server: the retriever's own embeddings, roles, usage, models, crowds."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest
from sentence_transformers import SentenceTransformer

from cdp.base.workspace import Workspace
from cdp.retrievers.encode import encode
from cdp.retrievers.resolve import resolve
from cdp.serving.engine import load_encoder
from cdp.serving.public import Serving
from tests.serving.support import serving
from tests.support import run_async
from tests.support_models import tiny_retriever

pytestmark = pytest.mark.slow

TEXTS = ["a b c", "x", "A longer text, of more tokens than the others: 1 2 3 4 5.", "ünïcödé 字 \u0000 \U0001f41d", " "]


def client(server: Serving) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def api(server: Serving) -> openai.OpenAI:
    return client(server)


def evaluated(model: Path, workspace: Workspace, texts: list[str], role: str) -> np.ndarray:
    """The embeddings that an evaluation computes: each text as its worker encodes it."""
    encoder = load_encoder(resolve(str(model), workspace), "cpu")
    return encode(encoder.model, texts, encoder.encoding(role, "fp32"))


def test_a_static_model_gives_the_same_bytes(api: openai.OpenAI, static_model: Path, demo_workspace: Workspace) -> None:
    expected = evaluated(static_model, demo_workspace, TEXTS, "document")
    # By itself the client asks for base64 and decodes it; other programs send null.
    for more in ({}, {"encoding_format": "float"}, {"extra_body": {"encoding_format": None}}):
        answer = api.embeddings.create(model="tiny", input=TEXTS, **more)
        assert [row.index for row in answer.data] == list(range(len(TEXTS)))
        assert np.array_equal(np.array([row.embedding for row in answer.data], np.float32), expected)
    raw = api.embeddings.create(model="tiny", input=TEXTS, encoding_format="base64").data[1].embedding
    assert base64.b64decode(str(raw)) == expected[1].tobytes()
    single = api.embeddings.create(model="tiny", input=TEXTS[2], dimensions=16)
    assert np.array_equal(np.array(single.data[0].embedding, np.float32), expected[2])
    assert answer.model == "tiny"


def test_models(api: openai.OpenAI) -> None:
    assert [model.id for model in api.models.list()] == ["tiny", "tiny:query", "tiny:document"]
    assert api.models.retrieve("tiny:query").owned_by == "cdp-studio"
    with pytest.raises(openai.NotFoundError) as error:
        api.models.retrieve("gpt")
    assert error.value.code == "model_not_found"


@pytest.fixture(scope="module")
def prompted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT that wants "q: " before a query and "d: " before a document."""
    model = tiny_retriever(tmp_path_factory.mktemp("prompted"))
    file = model / "config_sentence_transformers.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({**settings, "prompts": {"query": "q: ", "document": "d: "}}))
    return model


def test_a_transformer_gives_the_same_within_rounding_in_either_role(prompted: Path, demo_workspace: Workspace) -> None:
    long = "abc " * 200
    texts = [*TEXTS, long]
    with serving(demo_workspace, str(prompted)) as server:
        api = client(server)
        given = {}
        for model, role in (("model", "document"), ("model:query", "query"), ("model:document", "document")):
            answer = api.embeddings.with_raw_response.create(model=model, input=texts)
            assert answer.headers["x-cut-inputs"] == "1", "the long text is cut, as in an evaluation, and that is told"
            rows = answer.parse()
            given[role] = np.array([row.embedding for row in rows.data], np.float32)
            expected = evaluated(prompted, demo_workspace, texts, role)
            np.testing.assert_allclose(given[role], expected, atol=2e-6)
            model_itself = SentenceTransformer(str(prompted), device="cpu")
            prompt = {"query": "q: ", "document": "d: "}[role]
            tokens = [
                len(model_itself.tokenizer(prompt + text, truncation=True, max_length=128)["input_ids"])
                for text in texts
            ]
            assert rows.usage.prompt_tokens == rows.usage.total_tokens == sum(tokens)
        assert np.abs(given["query"] - given["document"]).max() > 0.01, "the prompt matters"


REFUSED = [
    ({"input": ""}, 400, "invalid_value", "input"),
    ({"input": []}, 400, "invalid_value", "input"),
    ({"input": ["a", ""]}, 400, "invalid_value", "input"),
    ({"input": [[1, 2], [3]]}, 400, "invalid_value", "input"),
    ({"input": ["a", None]}, 400, "invalid_value", "input"),
    ({"input": True}, 400, "invalid_value", "input"),
    ({"input": "a" * 100_001}, 400, "invalid_value", "input"),
    ({"input": "a" * 8_000_000}, 413, "request_too_large", None),
    ({"input": "a", "model": "text-embedding-3-small"}, 404, "model_not_found", "model"),
    ({"input": "a", "model": 5}, 400, "invalid_value", "model"),
    ({"input": "a", "dimensions": 8}, 400, "unsupported_dimensions", "dimensions"),
    ({"input": "a", "dimensions": "16"}, 400, "invalid_value", "dimensions"),
    ({"input": "a", "encoding_format": "int8"}, 400, "invalid_value", "encoding_format"),
    ({"input": "a", "extra_body": {"input_type": "query"}}, 400, "invalid_value", "input_type"),
]


@pytest.mark.parametrize(("given", "status", "code", "param"), REFUSED, ids=lambda value: str(value)[:40])
def test_bad_input_is_refused_in_the_apis_own_form(
    api: openai.OpenAI, given: dict[str, object], status: int, code: str, param: str | None
) -> None:
    with pytest.raises(openai.APIStatusError) as error:
        api.embeddings.create(**{"model": "tiny", "encoding_format": "float", **given})  # type: ignore[call-overload]
    raised = error.value
    assert (raised.status_code, raised.code, raised.param) == (status, code, param)
    assert raised.type == "invalid_request_error"
    assert raised.request_id


def test_many_clients_at_once(server: Serving, static_model: Path, demo_workspace: Workspace) -> None:
    """Each with a connection of its own and its own text; nobody gets another's answer."""
    texts = [f"client {n} asks" for n in range(30)]
    expected = evaluated(static_model, demo_workspace, texts, "document")

    async def ask(api: openai.AsyncOpenAI, n: int) -> None:
        answer = await api.embeddings.create(model="tiny", input=texts[n])
        assert np.array_equal(np.array(answer.data[0].embedding, np.float32), expected[n])

    async def crowd() -> None:
        limits = httpx.Limits(max_connections=30, max_keepalive_connections=30)
        async with httpx.AsyncClient(limits=limits, timeout=60) as http:
            api = openai.AsyncOpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0, http_client=http)
            await asyncio.gather(*(ask(api, n) for n in range(30)))

    run_async(crowd())
