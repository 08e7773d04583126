"""The openai generator against a real server: what is retried, what stops at once, and where the key is not."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cdp.config import SynthesisConfig
from cdp.errors import ConfigError, ProviderError
from cdp.records import Document
from cdp.synthesis import METHODS, make_generator
from cdp.synthesis.generators import Cancelled, RequestError
from cdp.synthesis.generators.base import Answer
from cdp.synthesis.generators.openai_chat import OpenAIGenerator, retry_after
from tests.synthesis.server import KEY, MODEL, ChatServer

DOCUMENT = Document("d1", "Basalt is a dark rock.")


def generator(server: ChatServer, key: str = KEY, **settings: object) -> OpenAIGenerator:
    values = {"corpus": "c", "generator": "openai", "model": MODEL, "base_url": server.url, **settings}
    made = make_generator(SynthesisConfig.from_dict(values), api_key=key)
    assert isinstance(made, OpenAIGenerator)
    return made


def ask(made: OpenAIGenerator) -> Answer:
    method = METHODS["diverse"]
    return made.generate(method.render(DOCUMENT.content, 2), DOCUMENT, method, 2)


def test_a_wrong_key_stops_at_once_without_being_repeated(server: ChatServer) -> None:
    wrong = "sk-wrong-987654321"
    with pytest.raises(ProviderError, match="refused the API key") as caught:
        ask(generator(server, wrong))
    assert not isinstance(caught.value, RequestError)
    assert wrong not in str(caught.value)
    assert len(server.bodies) == 1


def test_an_unknown_model_stops_at_once(server: ChatServer) -> None:
    with pytest.raises(ProviderError, match="has no model 'no-such-model'") as caught:
        ask(generator(server, model="no-such-model"))
    assert not isinstance(caught.value, RequestError)
    assert len(server.bodies) == 1


def test_an_unreachable_host_stops_at_once() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        config = SynthesisConfig.from_dict({"corpus": "c", "generator": "openai", "base_url": url})
        made = make_generator(config, api_key=KEY)
        with pytest.raises(ProviderError, match="cannot be reached") as caught:
            ask(made)  # type: ignore[arg-type]
    assert not isinstance(caught.value, RequestError)


def test_an_unknown_host_stops_at_once() -> None:
    config = SynthesisConfig.from_dict({"corpus": "c", "generator": "openai", "base_url": "http://nowhere.invalid/v1"})
    with pytest.raises(ProviderError, match="cannot be reached"):
        ask(make_generator(config, api_key=KEY))  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", ["429", "500"])
def test_a_passing_fault_is_retried(server: ChatServer, fault: str) -> None:
    server.script = [fault, fault]
    made = generator(server)
    made._backoff = lambda requests: 0.01  # type: ignore[method-assign]
    assert ask(made).text
    assert len(server.bodies) == 3


@pytest.mark.slow
def test_a_timeout_is_retried(server: ChatServer) -> None:
    server.script = ["timeout"]
    made = generator(server, timeout=1.0)
    assert ask(made).text
    assert len(server.bodies) == 2


def test_retry_after_is_honoured_by_every_request_of_the_run(server: ChatServer) -> None:
    server.script = ["429"]
    server.retry_after = "0.5"
    made = generator(server)
    first = threading.Thread(target=ask, args=(made,))
    first.start()
    while not server.bodies or made._closed_until == 0:
        first.join(0.01)
    ask(made)
    first.join()
    assert len(server.bodies) == 3
    assert min(server.times[1:]) - server.times[0] >= 0.5


def test_retries_are_bounded_and_counted_by_us_alone(server: ChatServer) -> None:
    server.script = ["429"] * 10
    with pytest.raises(RequestError, match=r"still failing after 3 tries \(429.*Lower concurrency") as caught:
        ask(generator(server, retries=2))
    assert caught.value.exhausted
    assert len(server.bodies) == 3


def test_a_refused_request_is_not_retried_and_is_this_documents_own(server: ChatServer) -> None:
    server.script = ["400"]
    with pytest.raises(RequestError, match="content filter") as caught:
        ask(generator(server))
    assert not caught.value.exhausted
    assert len(server.bodies) == 1


def test_used_up_credit_stops_at_once(server: ChatServer) -> None:
    server.script = ["quota"]
    with pytest.raises(ProviderError, match="credit is used up") as caught:
        ask(generator(server))
    assert not isinstance(caught.value, RequestError)


def test_a_very_long_wait_is_not_waited_for(server: ChatServer) -> None:
    server.script, server.retry_after = ["429"], "86400"
    with pytest.raises(ProviderError, match="come back in 86400 s"):
        ask(generator(server))


def test_a_model_with_other_parameters_is_understood(server: ChatServer) -> None:
    server.script = ["no max_tokens"] * 3
    made = generator(server, max_output_tokens=99)
    assert ask(made).text
    assert server.bodies[0]["max_tokens"] == 99
    assert server.bodies[1]["max_completion_tokens"] == 99
    assert "max_tokens" not in server.bodies[1]
    ask(made)
    assert len(server.bodies) == 3


@pytest.mark.parametrize("fault", ["html", "broken"])
def test_an_address_that_answers_something_else_is_told(server: ChatServer, fault: str) -> None:
    server.script = [fault]
    with pytest.raises(RequestError, match=r"without a choice|not JSON") as caught:
        ask(generator(server))
    assert caught.value.exhausted


def test_no_more_requests_are_on_their_way_than_asked_for(server: ChatServer) -> None:
    server.latency = 0.03
    made = generator(server, concurrency=3)
    assert made.concurrency > 3
    with ThreadPoolExecutor(12) as pool:
        answers = [future.result() for future in [pool.submit(ask, made) for _ in range(24)]]
    assert len(answers) == 24
    assert server.most_at_once == 3


def test_cancel_ends_a_wait(server: ChatServer) -> None:
    server.script, server.retry_after = ["429"], "60"
    made = generator(server)
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            ask(made)
        except Cancelled as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while made._closed_until == 0:
        thread.join(0.01)
    made.cancel()
    thread.join(5)
    assert not thread.is_alive()
    assert len(ended) == 1


def test_the_key_comes_from_the_argument_then_the_environment(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProviderError, match="refused the API key"):
        ask(generator(server, ""))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert ask(generator(server, "")).text
    monkeypatch.setenv("CDP_API_KEY", "sk-other")
    with pytest.raises(ProviderError, match="refused"):
        ask(generator(server, ""))
    assert ask(generator(server, KEY)).text


def test_openai_itself_needs_a_key() -> None:
    with pytest.raises(ProviderError, match="needs an API key"):
        make_generator(SynthesisConfig.from_dict({"corpus": "c", "generator": "openai"}))


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not the address"):
        make_generator(SynthesisConfig.from_dict({"corpus": "c", "generator": "openai", "base_url": url}), api_key=KEY)


def test_an_address_with_a_password_is_refused_without_repeating_it() -> None:
    config = SynthesisConfig.from_dict({"corpus": "c", "generator": "openai", "base_url": "http://me:hunter2@x/v1"})
    with pytest.raises(ConfigError) as caught:
        make_generator(config, api_key=KEY)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after": "3"}, 3.0), ({"retry-after-ms": "250"}, 0.25), ({}, None), ({"retry-after": "soon"}, None)],
)
def test_reading_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_may_be_a_date() -> None:
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0


def test_importing_the_package_loads_neither_torch_nor_the_client() -> None:
    heavy = "('torch', 'openai', 'pandas', 'transformers')"
    code = f"import sys, cdp.synthesis, cdp.synthesis.run; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
