"""The openai generator against a real server: what is retried, what stops at once, and where the key is not."""

from __future__ import annotations

import contextlib
import gc
import glob
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, ProviderError
from cdp.base.records import Document
from cdp.llm.answers import Answer, Cancelled, RequestError
from cdp.synthesis.generators import make_generator
from cdp.synthesis.generators.openai_chat import OpenAIGenerator
from cdp.synthesis.methods import METHODS
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


@pytest.mark.slow
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
    assert ask(made).text
    assert len(server.bodies) == 3


@pytest.mark.slow
def test_a_timeout_is_retried(server: ChatServer) -> None:
    server.script = ["timeout"]
    made = generator(server, timeout=1.0)
    assert ask(made).text
    assert len(server.bodies) == 2


@pytest.mark.slow
def test_retry_after_is_honoured(server: ChatServer) -> None:
    server.script = ["429"]
    server.retry_after = "0.5"
    ask(generator(server))
    assert len(server.bodies) == 2
    assert server.times[1] - server.times[0] >= 0.5


@pytest.mark.slow
def test_retries_are_bounded(server: ChatServer) -> None:
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
    with pytest.raises(ProviderError, match="Retry-After: 86400"):
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


@pytest.mark.slow
def test_no_more_requests_are_on_their_way_than_asked_for(server: ChatServer) -> None:
    server.latency = 0.03
    made = generator(server, concurrency=3)
    assert made.concurrency > 3
    with ThreadPoolExecutor(12) as pool:
        answers = [future.result() for future in [pool.submit(ask, made) for _ in range(12)]]
    assert len(answers) == 12
    assert server.most_at_once == 3


@pytest.mark.slow
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
    while not server.bodies:
        thread.join(0.01)
    thread.join(0.1)
    made.cancel()
    thread.join(5)
    assert not thread.is_alive()
    assert len(ended) == 1


def test_the_key_comes_from_the_argument_then_the_environment(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProviderError, match="refused the API key"):
        ask(generator(server, ""))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert ask(generator(server, "")).text
    monkeypatch.setenv("CDP_API_KEY", "sk-other")
    with pytest.raises(ProviderError, match="refused"):
        ask(generator(server, ""))
    assert ask(generator(server, KEY)).text


def test_openai_itself_needs_a_key() -> None:
    with pytest.raises(ProviderError, match="needs an API key"):
        make_generator(SynthesisConfig.from_dict({"corpus": "c", "generator": "openai"}))


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000", "ftp://x/v1", "http://", "file:///etc/passwd", "//x/v1", "http:///v1", "javascript:alert(1)",
        "http://127.0.0.1:abc/v1", "http://127.0.0.1:99999/v1", "http://127.0.0.1:-1/v1", "http://127.0.0.1:0/v1",
        "http://[::1/v1", "http://[nowhere]/v1", "http://a b/v1", "http://x\n.example/v1", "http://x\x00/v1",
        "http://x/v1\r\nHost: y", "http://x\ud800/v1", "http://" + "a" * 64 + ".example/v1", "http://..example/v1",
        "http://x/" + "a" * 3000, "http://x\\@y/v1",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"not the address|must not hold") as caught:
        make_generator(SynthesisConfig.from_dict({"corpus": "c", "generator": "openai", "base_url": url}), api_key=KEY)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "url", ["http://[::1]:8000/v1", "https://x.example/v1/", "http://bücher.example/v1", " http://x:1/v1 "]
)
def test_an_address_that_is_one_is_taken(url: str) -> None:
    config = SynthesisConfig.from_dict({"corpus": "c", "generator": "openai", "base_url": url})
    assert make_generator(config, api_key=KEY).parameters["base_url"] == url.strip().rstrip("/")


@pytest.mark.parametrize("key", ["sk-a\nHost: y", "schlüssel", "sk a", "sk-\x00"])
def test_a_key_that_no_header_can_hold_is_refused_without_repeating_it(server: ChatServer, key: str) -> None:
    with pytest.raises(ProviderError, match="holds characters that no key has") as caught:
        generator(server, key)
    assert key not in str(caught.value)


def test_an_address_with_a_password_is_refused_without_repeating_it() -> None:
    config = SynthesisConfig.from_dict({"corpus": "c", "generator": "openai", "base_url": "http://me:hunter2@x/v1"})
    with pytest.raises(ConfigError) as caught:
        make_generator(config, api_key=KEY)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("value", ["inf", "NaN", "-1", "soon"])
def test_a_retry_after_that_nobody_can_mean_is_as_none(server: ChatServer, value: str) -> None:
    server.script, server.retry_after = ["429"], value
    made = generator(server)
    assert ask(made).text
    assert len(server.bodies) == 2


@pytest.mark.slow
def test_a_reset_is_tried_again_also_as_the_first_answer(server: ChatServer) -> None:
    server.script = ["reset", "short body"]
    made = generator(server)
    answer = ask(made)
    assert answer.text
    assert (answer.usage.requests, answer.usage.unanswered) == (1, 2)


def test_a_text_that_no_request_can_hold_is_sent_without_it(server: ChatServer) -> None:
    document = Document("d1", "Basalt \ud83d is dark.")
    method = METHODS["diverse"]
    assert generator(server).generate(method.render(document.content, 2), document, method, 2).text
    assert "Basalt ? is dark." in server.bodies[0]["messages"][0]["content"]


@pytest.mark.slow
def test_a_generator_that_is_gone_leaves_no_thread_and_no_connection(server: ChatServer) -> None:
    def threads() -> int:
        return sum(thread.name == "endpoint" for thread in threading.enumerate())

    def sockets() -> int:
        links = []
        for link in glob.glob(f"/proc/{os.getpid()}/fd/*"):
            with contextlib.suppress(OSError):  # closed meanwhile
                links.append(os.readlink(link))
        return sum("socket:" in link or "eventpoll" in link for link in links)

    gc.freeze()  # what other tests loaded is no garbage of this one, and takes long to look through
    ask(generator(server))  # what is opened once stays open
    gc.collect()
    before = threads(), sockets()
    for _ in range(5):
        ask(generator(server))
        generator(server)  # never used
    gc.collect()
    until(lambda: threads() <= before[0] and sockets() <= before[1])


def until(holds: Callable[[], bool]) -> None:
    """Wait for what happens in another thread, at most as long as a slow machine may take."""
    for _ in range(3000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to be so")
