"""The real client against a server with each situation of the table: what is said, retried and learnt."""

from __future__ import annotations

import json

import pytest

from cdp.base.errors import ProviderError, RefusedError
from cdp.llm.answers import RequestError
from cdp.llm.refusals import Learnt
from cdp.synthesis.run import SynthesisRun
from tests.endpoint_situations import INSIDE, NO_PATH, OF_EVERY, REFUSED, SITUATIONS, WORDS
from tests.synthesis.conftest import CorpusMaker, JobMaker, _no_keys, _short_backoff, make_corpus, make_job, server
from tests.synthesis.server import KEY, ChatServer
from tests.synthesis.test_openai_generator import ask, generator
from tests.synthesis.test_run import documents_of, settings

__all__ = ["_no_keys", "_short_backoff", "make_corpus", "make_job", "server"]
pytestmark = pytest.mark.slow

# Refusals of parameters that a chat request has, in the order in which a server might name them.
OF_CHAT = [
    "refused: OpenAI: max_tokens", "refused: Mistral: max_completion_tokens", "refused: OpenAI: temperature",
    "refused: DeepSeek: schema", "refused: LM Studio: JSON mode",
]  # fmt: skip


@pytest.mark.parametrize("name", [f"words: {name}" for name in WORDS if name != "a redirect"])
def test_the_words_of_the_server_reach_the_person(server: ChatServer, name: str) -> None:
    server.script = [name]
    with pytest.raises(ProviderError) as caught:
        ask(generator(server))
    assert SITUATIONS[name].words[:150].rstrip(".") in str(caught.value)
    assert str(SITUATIONS[name].status) in str(caught.value)
    assert len(server.bodies) == 1


@pytest.mark.parametrize("name", [f"inside: {name}" for name in INSIDE])
def test_an_error_inside_200_is_the_error_that_it_says(server: ChatServer, name: str) -> None:
    said = SITUATIONS[name]
    passing = said.inside in (429, 502, 503)
    server.script = [name]
    made = generator(server, retries=2)
    if passing:
        assert ask(made).text
        assert len(server.bodies) == 2
    server.script = [name] * 3
    with pytest.raises(RequestError) as caught:
        ask(made)
    assert said.words.rstrip(".") in str(caught.value)
    assert str(said.inside) in str(caught.value)
    assert len(server.bodies) == (5 if passing else 1)


@pytest.mark.parametrize("name", OF_EVERY)
def test_what_is_refused_of_every_request_ends_the_run(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, name: str
) -> None:
    said = OF_EVERY[name]
    server.habits = [f"of every: {name}"]
    sentence = {"credit": "credit is used up", "key": "refused the API key", "model": "has no model"}[said.refuses]
    with pytest.raises(RefusedError, match=rf"{sentence}.*\({said.status}"):
        SynthesisRun(make_job(**settings(server, make_corpus(9).id, concurrency=1)), api_key=KEY).execute()
    assert len(server.bodies) <= 3, "those of the threads that had begun"


@pytest.mark.parametrize("name", NO_PATH)
def test_a_wrong_address_is_not_a_missing_model(server: ChatServer, name: str) -> None:
    server.habits = [f"no path: {name}"]
    with pytest.raises(
        RefusedError, match=rf"is the address of no such endpoint \(404: {NO_PATH[name].words}"
    ) as caught:
        ask(generator(server))
    assert "has no model" not in str(caught.value)
    assert "/v1" in caught.value.hint


def test_a_minute_s_quota_is_waited_for(server: ChatServer) -> None:
    server.script = ["not refused: Gemini: a minute's quota"]
    assert ask(generator(server)).text
    assert len(server.bodies) == 2


@pytest.mark.parametrize("name", ["llama-cpp-python: schema", "DeepSeek: schema", "OpenAI: max_tokens"])
def test_at_once_no_more_than_concurrency_are_refused_and_none_is_paid(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, name: str
) -> None:
    server.latency, server.habits = 0.02, [f"refused: {name}"]
    values = settings(server, make_corpus(24).id, concurrency=4, output="auto", timeout=10)
    result = SynthesisRun(make_job(**values), api_key=KEY).execute()
    refused = server.faults[server.habits[0]]
    assert 1 <= refused <= 4
    assert (result["n_documents"], result["failures"], len(server.bodies)) == (24, 0, 24 + refused)
    assert set(server.asked.values()) <= {1, 2}
    assert result["spent"]["requests"] == 24
    assert not {"estimated", "unanswered"} & set(result["spent"])


def test_a_key_or_a_model_refused_inside_200_ends_the_run(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for code, words in ((401, "refused the API key"), (402, "credit is used up"), (404, "has no model")):
        body = json.dumps({"error": {"message": "No.", "code": code}}).encode()
        monkeypatch.setitem(SITUATIONS, "own", type(SITUATIONS["inside: FastAPI"])("own", 200, body, "No."))
        server.script = ["own"]
        with pytest.raises(ProviderError, match=words) as caught:
            ask(generator(server))
        assert not isinstance(caught.value, RequestError)


def test_a_sign_in_page_is_named(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    page = b"<!DOCTYPE html><title>Sign in &middot; Corp</title><script>error</script>"
    monkeypatch.setitem(SITUATIONS, "own", type(SITUATIONS["inside: FastAPI"])("own", 200, page, ""))
    server.script = ["own"]
    with pytest.raises(RequestError, match=r"a web page, “Sign in · Corp”, not JSON.*often it ends in /v1"):
        ask(generator(server))


@pytest.mark.parametrize("name", ["waits: Google: retryDelay", "waits: OpenAI: in 20s"])
def test_a_pause_said_in_the_body_is_made(server: ChatServer, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = SITUATIONS[name]
    shorter = said.body.replace(b"37s", b"0.4s").replace(b"20s", b"400ms")
    monkeypatch.setitem(SITUATIONS, "own", type(said)("own", 429, shorter, ""))
    server.script = ["own"]
    assert ask(generator(server)).text
    assert server.times[1] - server.times[0] >= 0.4


@pytest.mark.parametrize("name", [f"refused: {name}" for name, row in REFUSED.items() if row.when == "response_format"])
def test_a_refused_format_in_any_shape_gives_way_to_a_list(server: ChatServer, name: str) -> None:
    server.habits = [name]
    made = generator(server)
    assert ask(made).text
    assert [body.get("response_format", {}).get("type") for body in server.bodies] == [
        "json_schema", "json_object", None,
    ]  # fmt: skip
    assert "JSON" not in server.bodies[-1]["messages"][0]["content"], "the list's own prompt"


def test_json_mode_is_tried_before_a_list(server: ChatServer) -> None:
    server.habits = ["refused: DeepSeek: schema"]
    made = generator(server)
    assert ask(made).text
    assert server.bodies[-1]["response_format"] == {"type": "json_object"}
    assert server.bodies[-1]["messages"] == server.bodies[0]["messages"]


def test_what_is_learnt_is_kept_for_the_job(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, capsys: pytest.CaptureFixture[str]
) -> None:
    server.habits = OF_CHAT
    server.fault_for = {"Thing3": "500"}
    job = make_job(**settings(server, make_corpus(4).id, concurrency=1, retries=0, output="auto"))
    first = SynthesisRun(job, api_key=KEY).execute()
    assert (first["n_documents"], first["failures"]) == (3, 1)
    assert [server.faults[name] for name in OF_CHAT] == [1] * len(OF_CHAT), "each was refused once"
    said = capsys.readouterr().err.splitlines()
    assert "takes no JSON mode, no JSON schema, no max_completion_tokens, no max_tokens, no temperature" in said[-1]
    server.fault_for = {}
    second = SynthesisRun(job, api_key=KEY).execute()
    assert documents_of(job, second) == ["d0", "d1", "d2", "d3"]
    assert [server.faults[name] for name in OF_CHAT] == [1] * len(OF_CHAT), "a resume does not ask again"
    assert set(json.loads((job.folder / Learnt.FILE).read_text())) == {f"{job.config['model']} at {server.url}"}
    assert "max_tokens" in server.bodies[0], "a new job asks in full"
