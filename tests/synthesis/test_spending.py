"""What a run pays: never more than its budget and one request's error, never for an answer that it could have kept."""

from __future__ import annotations

import os
import threading
import time

import pytest

from cdp.base.errors import ConfigError
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json
from cdp.llm.answers import Answer, Cancelled, Usage
from cdp.llm.cache import Account, AnswerCache, OverBudget
from cdp.llm.prices import Price
from cdp.synthesis.run import SynthesisRun
from tests.support import write_prices
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, MODEL, ChatServer, numbered
from tests.synthesis.test_run import settings

PRICE = Price(MODEL, 1.0, 10.0, as_of="2026-01-01")
REQUEST = Usage(100, 20, 1)


@pytest.fixture
def priced(workspace: Workspace) -> None:
    """A price for the server's model, in the workspace's own table."""
    write_prices(workspace, [Price(MODEL, PRICE.input, PRICE.output)], PRICE.as_of)


@pytest.mark.slow
def test_counts_of_zero_use_up_a_budget(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, priced: None
) -> None:
    """Seen at LiteLLM 1.106.12, where the model behind it counts nothing."""
    server.changes = {"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}
    job = make_job(**settings(server, make_corpus(40).id, budget=0.01, max_output_tokens=64))
    with pytest.raises(ConfigError, match="is used up"):
        SynthesisRun(job, api_key=KEY).execute()
    assert 0 < len(server.bodies) < 40


@pytest.mark.slow
@pytest.mark.parametrize("longest", [64, 2048])
def test_a_budget_is_not_overshot_by_what_is_queued(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, priced: None, longest: int
) -> None:
    """Before: 217% over it with 8 requests at once, because ten more were queued when it was reached."""
    server.latency = 0.02
    budget = 0.01
    job = make_job(**settings(server, make_corpus(40).id, concurrency=8, budget=budget, max_output_tokens=longest))
    with pytest.raises(ConfigError, match="is used up"):
        SynthesisRun(job, api_key=KEY).execute()
    result = read_json(job.results / "synthesis.json")
    dearest = max(PRICE.cost(Usage(len(b["messages"][0]["content"]) // 4, longest)) for b in server.bodies)
    assert budget / 2 < result["cost"] <= budget + min(dearest, 0.002)
    assert result["spent"]["requests"] == len(server.bodies)


def test_what_is_on_its_way_counts_at_its_highest_price(workspace: Workspace) -> None:
    most = Usage(100, 90, 1)
    with AnswerCache(workspace) as cache:
        account = Account(cache, "job", price=PRICE, budget=2.5 * PRICE.cost(most))
        at_once, peak, lock, full = 0, [0], threading.Lock(), threading.Barrier(2, timeout=30)

        def send() -> Answer:
            nonlocal at_once
            with lock:
                at_once += 1
                peak[0] = max(peak[0], at_once)
            if peak[0] < 3:
                try:
                    full.wait()  # two are on their way together, and the third must not join them
                except threading.BrokenBarrierError:
                    pass
            with lock:
                at_once -= 1
            return Answer("x", usage=most)

        ended: list[str] = []

        def ask(key: str) -> None:
            try:
                account.ask(key, REQUEST, most, send)
                ended.append("answered")
            except OverBudget:
                ended.append("over")

        threads = [threading.Thread(target=ask, args=(str(i) * 64,)) for i in range(5)]
        for thread in threads[:2]:
            thread.start()
        for thread in threads[:2]:
            thread.join()
        for thread in threads[2:]:
            thread.start()
        full.abort()
        for thread in threads[2:]:
            thread.join()
    assert peak[0] == 2
    assert account.used_up
    assert PRICE.cost(account.spent) <= account.budget + PRICE.cost(most)  # type: ignore[operator]
    assert sorted(ended)[-2:] == ["over", "over"]


def test_a_stop_wakes_those_that_wait_for_the_budget(workspace: Workspace) -> None:
    with AnswerCache(workspace) as cache:
        account = Account(cache, "job", price=PRICE, budget=PRICE.cost(Usage(100, 100)))
        going, stopped = threading.Event(), []

        def slow() -> Answer:
            going.wait(30)
            return Answer("x", usage=REQUEST)

        def wait() -> None:
            try:
                account.ask("b" * 64, REQUEST, Usage(100, 90, 1), slow)
            except Cancelled:
                stopped.append(True)

        first = threading.Thread(target=account.ask, args=("a" * 64, REQUEST, Usage(100, 90, 1), slow))
        second = threading.Thread(target=wait)
        first.start()
        while not account._reserved:
            time.sleep(0.01)
        second.start()
        account.close()
        second.join(30)
        going.set()
        first.join(30)
    assert stopped == [True]


def test_the_books_hold_every_attempt(workspace: Workspace) -> None:
    with AnswerCache(workspace) as cache:
        account = Account(cache, "job")
        account.ask("a" * 64, REQUEST, REQUEST, lambda: Answer("x", usage=REQUEST))
        cache.begin("job", "b" * 64, REQUEST)
        cache.begin("another", "c" * 64, REQUEST)
    with AnswerCache(workspace) as cache:
        assert cache.spent("job") == REQUEST
        assert cache.settle_interrupted("job", charged=True) == 1
        assert cache.settle_interrupted("job", charged=True) == 0
        assert Account(cache, "job").spent == REQUEST + Usage(100, 20, estimated=1, unanswered=1)
        assert cache.spent("another") == Usage()
        assert cache.settle_interrupted("another", charged=False) == 1
        assert cache.spent("another") == Usage()


@pytest.mark.slow
def test_an_answer_that_takes_longer_than_a_stop_may_is_given_up_and_counted(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "CDP_STOP_GRACE_S", "2")
    server.hang = 45.0
    server.fault_for = {"Thing0": "timeout"}
    job = make_job(**settings(server, make_corpus(3).id, concurrency=3))
    began = time.monotonic()

    def stop() -> None:
        while len(server.bodies) < 3:
            time.sleep(0.01)
        (job.folder / "stop.request").touch()

    threading.Thread(target=stop).start()
    result = SynthesisRun(job, api_key=KEY).execute()
    assert time.monotonic() - began < server.hang, "it did not wait for the answer that never comes"
    assert (result["n_documents"], result["failures"], result["complete"]) == (2, 0, False)
    assert result["spent"]["unanswered"] == 1


@pytest.mark.slow
def test_an_answer_whose_document_is_given_up_is_in_the_books(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    """A document of several requests that is stopped half-way has no line; its answers are kept and paid for once."""
    job = make_job(**settings(server, make_corpus(1).id, method="sap", per_doc=3, output="list"))

    def stop_at_the_second(prompt: str, m: int) -> str:
        if len(server.bodies) == 2:
            (job.folder / "stop.request").touch()
            time.sleep(1.5)
        return f"Summary: x\nQuestion: {numbered(prompt, 1)} {len(server.bodies)}"

    server.answer = stop_at_the_second
    first = SynthesisRun(job, api_key=KEY).execute()
    assert first["n_documents"] == 0
    assert first["spent"]["requests"] == 2
    (job.folder / "stop.request").unlink()
    second = SynthesisRun(Job(job.folder), api_key=KEY).execute()
    assert second["n_documents"] == 1
    assert second["spent"]["requests"] == len(server.bodies) == 3
