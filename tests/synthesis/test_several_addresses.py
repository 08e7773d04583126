"""One model at several addresses: all get requests, one that fails is left out, and no answer is paid for twice."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, ProviderError, RefusedError
from cdp.base.workspace import Workspace
from cdp.services import queries
from cdp.synthesis import make_generator
from cdp.synthesis.batch import requests
from cdp.synthesis.cache import AnswerCache
from cdp.synthesis.generators import Cancelled
from cdp.synthesis.generators.addresses import MOST_ADDRESSES, OPENAI_URL, Address, Addresses, checked_urls
from cdp.synthesis.generators.openai_chat import OpenAIGenerator
from cdp.synthesis.run import Run
from tests.jobs.support import until
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, MODEL, ChatServer, chat_server
from tests.synthesis.test_openai_generator import ask
from tests.synthesis.test_run import lines_of

pytestmark = pytest.mark.slow


@pytest.fixture
def second() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens, and nobody else can."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/v1"


def settings(*urls: str, **more: object) -> dict[str, object]:
    return {"generator": "openai", "model": MODEL, "base_url": ", ".join(urls), **more}


def generator(*urls: str, **more: object) -> OpenAIGenerator:
    made = make_generator(SynthesisConfig.from_dict({"corpus": "c", **settings(*urls, **more)}), api_key=KEY)
    assert isinstance(made, OpenAIGenerator)
    return made


def ask_often(made: OpenAIGenerator, n: int) -> None:
    with ThreadPoolExecutor(made.concurrency) as pool:
        for future in [pool.submit(ask, made) for _ in range(n)]:
            assert future.result().text


def n_asked(server: ChatServer) -> int:
    return len(server.bodies)


def test_each_address_has_its_share_and_never_more_than_concurrency(server: ChatServer, second: ChatServer) -> None:
    server.latency = second.latency = 0.02
    made = generator(server.url, second.url, concurrency=3)
    ask_often(made, 60)
    assert n_asked(server) + n_asked(second) == 60
    assert min(n_asked(server), n_asked(second)) >= 20
    assert (server.most_at_once, second.most_at_once) == (3, 3)


def test_a_slow_address_gets_fewer(server: ChatServer, second: ChatServer) -> None:
    server.latency, second.latency = 0.01, 0.2
    ask_often(generator(server.url, second.url, concurrency=2), 60)
    assert n_asked(second) < n_asked(server) / 2


def test_one_that_cannot_be_reached_costs_no_try_and_is_told_once(
    server: ChatServer, nobody: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = generator(nobody, server.url, retries=0)
    ask_often(made, 30)
    assert n_asked(server) == 30
    assert capsys.readouterr().out.count(f"{nobody} cannot be reached") == 1


def test_where_none_can_be_reached_each_is_named_at_once(nobody: str) -> None:
    other = nobody.replace("127.0.0.1", "127.0.0.2")
    with pytest.raises(ProviderError, match="None of the 2 addresses can be reached") as caught:
        ask(generator(nobody, other))
    assert nobody in str(caught.value)
    assert other in str(caught.value)


def test_a_server_that_goes_and_comes_back(server: ChatServer, capsys: pytest.CaptureFixture[str]) -> None:
    going = ChatServer()
    going.start()
    made = generator(server.url, going.url, retries=3)
    ask_often(made, 10)
    assert n_asked(going) > 0
    going.stop()
    ask_often(made, 40)
    assert f"{going.url} cannot be reached" in capsys.readouterr().out
    back = ChatServer(port=int(going.url.split(":")[2].split("/")[0]))
    back.start()
    try:
        until(lambda: ask(made) and n_asked(back) > 0, "the address to be tried again")
    finally:
        back.stop()
    assert f"{going.url} can be reached again." in capsys.readouterr().out


def test_an_address_that_asks_for_a_pause_gets_it_and_the_other_goes_on(server: ChatServer, second: ChatServer) -> None:
    server.script, server.retry_after = ["429"], "300"
    ask_often(generator(server.url, second.url, retries=1, concurrency=4), 40)
    assert n_asked(server) <= 8, "those that were sent before its answer was read, and no other"
    assert n_asked(server) + n_asked(second) == 41


def test_a_failing_request_is_tried_at_another_address(server: ChatServer, second: ChatServer) -> None:
    server.rates = {"500": 1.0}
    assert ask(generator(server.url, second.url, retries=1)).text
    assert (n_asked(server), n_asked(second)) == (1, 1)


def test_an_address_that_refuses_the_key_or_lacks_the_model_ends_the_run(server: ChatServer) -> None:
    with chat_server() as other:
        for made in (generator(server.url, other.url, model="another"), generator(other.url, server.url, model="x")):
            with pytest.raises(RefusedError, match=r"http://127.0.0.1:\d+/v1 has no model"):
                ask(made)
            with pytest.raises(Cancelled):
                ask(made)


def test_what_one_address_does_not_take_is_sent_to_none(server: ChatServer, second: ChatServer) -> None:
    server.script, second.script = ["no schema"], ["no schema"]
    made = generator(server.url, second.url, retries=0)
    assert ask(made).text
    assert ask(made).text
    assert sum("response_format" in body for body in server.bodies + second.bodies) == 1


def test_a_stop_ends_the_wait_for_every_address(server: ChatServer, second: ChatServer) -> None:
    for each in (server, second):
        each.script, each.retry_after = ["429"], "300"
    made = generator(server.url, second.url)
    ended = threading.Event()

    def wait() -> None:
        with pytest.raises(Cancelled):
            ask(made)
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    until(lambda: n_asked(server) and n_asked(second), "both addresses to ask for a pause")
    made.cancel()
    assert ended.wait(60)


def test_an_address_that_fails_is_tried_by_one_request_at_a_time() -> None:
    first, other = (Address(url, endpoint=None) for url in ("http://a", "http://b"))  # type: ignore[arg-type]
    turns = Addresses([first, other], at_once=4)
    assert turns.leave_out(first, "refused")
    first.closed_until = 0.0
    taken = [turns.take() for _ in range(5)]
    assert [taken.count(first), taken.count(other)] == [1, 4]
    for address in taken:
        turns.release(address)
    turns.answered(first)
    taken = [turns.take() for _ in range(8)]
    assert [taken.count(first), taken.count(other)] == [4, 4]


def test_one_that_is_closed_for_long_is_no_way_out(server: ChatServer, nobody: str) -> None:
    server.script, server.retry_after = ["429"], "3600"
    made = generator(server.url, nobody, retries=1)
    with pytest.raises(ProviderError, match=f"The connection to {nobody} failed"):
        ask(made)
    assert n_asked(server) == 1


def test_pauses_double_once_each_and_end_with_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [100.0]
    monkeypatch.setattr("cdp.synthesis.generators.addresses.time.monotonic", lambda: moment[0])
    first, other = (Address(url, endpoint=None) for url in ("http://a", "http://b"))  # type: ignore[arg-type]
    turns = Addresses([first, other], at_once=4)
    pauses = []
    for _ in range(8):
        turns.leave_out(first, "refused")
        pauses.append(first.closed_until - moment[0])
        turns.leave_out(first, "refused")  # a second request that was on its way
        moment[0] = first.closed_until
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]
    turns.answered(first)
    turns.leave_out(first, "refused")
    assert first.closed_until - moment[0] == 0.5


def test_a_job_gives_the_set_of_one_address_and_pays_for_nothing_twice(
    server: ChatServer, second: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace
) -> None:
    corpus = make_corpus(20)
    job = make_job(corpus=corpus.id, per_doc=3, **settings(server.url, second.url))
    result = Run(job, api_key=KEY).execute()
    assert result["complete"]
    asked = server.asked + second.asked
    assert (len(asked), set(asked.values())) == (20, {1})
    assert min(n_asked(server), n_asked(second)) > 0
    manifest = query_sets.load(workspace, result["query_set"])
    assert manifest.parameters["base_url"] == f"{server.url}, {second.url}"

    for urls in ((server.url,), (server.url, "http://127.0.0.1:9/v1"), (server.url, second.url)):
        again = make_job(corpus=corpus.id, per_doc=3, **settings(*urls))
        same = Run(again, api_key=KEY).execute()
        assert same["spent"]["requests"] == 0
        assert lines_without_usage(again, same) == lines_without_usage(job, result)
        config = SynthesisConfig.from_dict(again.config)
        with AnswerCache(workspace) as cache:
            assert list(requests(workspace, config, cache)) == []
    assert n_asked(server) + n_asked(second) == 20


def lines_without_usage(job: object, result: dict[str, object]) -> list[dict[str, object]]:
    return [{**line, "usage": None} for line in lines_of(job, result)]  # type: ignore[arg-type]


def test_a_server_dies_in_the_middle_of_a_job(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = make_corpus(60)
    server.latency = 0.02
    dying = ChatServer(latency=0.02)
    dying.start()
    job = make_job(corpus=corpus.id, per_doc=2, concurrency=2, **settings(server.url, dying.url))

    def kill() -> None:
        until(lambda: n_asked(dying) >= 5, "some requests")
        dying.stop()

    killing = threading.Thread(target=kill)
    killing.start()
    result = Run(job, api_key=KEY).execute()
    killing.join()
    assert (result["complete"], result["n_documents"], result["failures"]) == (True, 60, 0)
    assert sum((server.answered + dying.answered).values()) <= 60 + 2 * 2
    assert f"{dying.url} cannot be reached" in capsys.readouterr().out


def test_the_estimate_counts_on_every_address(make_corpus: CorpusMaker, workspace: Workspace) -> None:
    corpus = make_corpus(6)
    seconds = []
    for urls in (("http://a/v1",), ("http://a/v1", "http://b/v1", "http://c/v1")):
        config = SynthesisConfig.from_dict({"corpus": corpus.id, **settings(*urls)})
        seconds.append(queries.synthesis.estimate(workspace, config, latency_s=2.0).seconds or 0.0)
    assert seconds[0] == pytest.approx(3 * seconds[1])


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("", [OPENAI_URL]),
        (" , ,", [OPENAI_URL]),
        ("http://a/v1", ["http://a/v1"]),
        ("http://a/v1,http://b/v1/", ["http://a/v1", "http://b/v1"]),
        (" http://a/v1 ,, http://b/v1 , http://a/v1/ ", ["http://a/v1", "http://b/v1"]),
    ],
)
def test_addresses_are_read(text: str, urls: list[str]) -> None:
    assert checked_urls(text) == urls


@pytest.mark.parametrize(
    "text", ["http://a/v1, b", "http://a/v1 http://b/v1", "http://a/v1, http://me:pw@b/v1", "http://a/v1;http://b/v1"]
)
def test_one_that_is_none_is_refused_among_others(text: str) -> None:
    with pytest.raises(ConfigError, match=r"not the address|must not hold"):
        checked_urls(text)


def test_no_more_addresses_than_a_process_can_serve() -> None:
    with pytest.raises(ConfigError, match="65 addresses are more than the 64"):
        checked_urls(",".join(f"http://h{i}/v1" for i in range(MOST_ADDRESSES + 1)))
