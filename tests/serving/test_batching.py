"""The queue: many requests in one batch, a fair share for each; a bad text spoils no other request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from cdp.serving.public import Batcher
from cdp.serving.web import ApiError
from tests.support import run_async


class Model:
    """Doubles numbers, notes its batches, and works only while it may."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[Any]]] = []
        self.may = threading.Event()
        self.batcher = Batcher(self, batch_texts=8, max_queue=40, observe=lambda *_: None)

    def __call__(self, kind: str, items: list[Any]) -> Sequence[Any]:
        self.batches.append((kind, items))
        assert self.may.wait(10)
        if "bad" in items:
            raise ValueError("bad")
        return [2 * item for item in items]

    async def asked(self, *requests: tuple[str, list[Any]]) -> list[Any]:
        """Results of requests that all wait while the model is at work on a first one."""
        first = asyncio.create_task(self.batcher.submit("a", [0]))
        while not self.batches:
            await asyncio.sleep(0.001)
        tasks = [asyncio.create_task(self.batcher.submit(kind, items)) for kind, items in requests]
        await asyncio.sleep(0)
        self.may.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert await first == [0]
        assert self.batcher.waiting == 0
        return results


def ask(*requests: tuple[str, list[Any]]) -> tuple[list[Any], Model]:
    model = Model()
    return run_async(model.asked(*requests)), model


def test_what_arrives_meanwhile_becomes_one_batch() -> None:
    results, model = ask(*(("a", [n]) for n in range(1, 9)))
    assert results == [[2 * n] for n in range(1, 9)]
    assert model.batches[1:] == [("a", list(range(1, 9)))]


def test_a_large_request_shares_its_batches() -> None:
    results, model = ask(("a", list(range(20))), ("a", [100, 101]))
    assert results == [[2 * n for n in range(20)], [200, 202]]
    assert {100, 101} <= set(model.batches[1][1]), "the small one is in the first batch after it came"
    assert [len(items) for _, items in model.batches] == [1, 6, 4, 4, 4, 4]


def test_kinds_are_not_mixed_and_none_waits_for_all_of_another() -> None:
    results, model = ask(("a", list(range(10))), ("b", list(range(10))))
    assert results == [[2 * n for n in range(10)]] * 2
    assert [kind for kind, _ in model.batches[1:]] == ["a", "b", "a", "b", "a", "b"]


def test_one_bad_text_fails_its_own_request_alone() -> None:
    results, _ = ask(("a", [1]), ("a", ["bad"] * 20), ("a", [2]))
    assert (results[0], results[2]) == ([2], [4])
    assert isinstance(results[1], ValueError)


def test_a_full_queue_refuses() -> None:
    results, _ = ask(("a", list(range(39))), ("a", [1]))
    assert results[0] == [2 * n for n in range(39)]
    assert isinstance(results[1], ApiError)
    assert results[1].status == 429


def test_a_request_that_was_given_up_is_not_read() -> None:
    model = Model()

    async def leave() -> None:
        first = asyncio.create_task(model.batcher.submit("a", [0]))
        while not model.batches:
            await asyncio.sleep(0.001)
        given_up, other = (asyncio.create_task(model.batcher.submit("a", items)) for items in (["never"], [1]))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.sleep(0)
        model.may.set()
        assert (await first, await other) == ([0], [2])
        with pytest.raises(asyncio.CancelledError):
            await given_up

    run_async(leave())
    assert ("a", [1]) in model.batches
