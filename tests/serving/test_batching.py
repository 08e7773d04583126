"""The queue: many requests in one batch, a fair share for each, an end; a bad text spoils no other request."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from cdp.serving.batching import Batcher, ClosedError, FullError


class Model:
    """Doubles numbers, notes its batches, and works only while it may."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[Any]]] = []
        self.may = threading.Event()
        self.busy = threading.Event()

    def __call__(self, kind: str, items: list[Any]) -> Sequence[Any]:
        self.batches.append((kind, items))
        self.busy.set()
        assert self.may.wait(10)
        if "bad" in items:
            raise ValueError("bad")
        return [2 * item for item in items]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def batcher(model: Model) -> Iterator[Batcher]:
    made = Batcher(model, batch_texts=8, wait_s=0, max_queue=40)
    yield made
    model.may.set()
    made.close(10)


def occupy(batcher: Batcher, model: Model) -> Any:
    """A first batch that the model is at work on, so that what comes next waits."""
    first = batcher.submit("a", [0])
    assert model.busy.wait(10)
    return first


def test_what_arrives_meanwhile_becomes_one_batch(batcher: Batcher, model: Model) -> None:
    first = occupy(batcher, model)
    futures = [batcher.submit("a", [n]) for n in range(1, 9)]
    model.may.set()
    assert [future.result(10) for future in (first, *futures)] == [[2 * n] for n in range(9)]
    assert model.batches == [("a", [0]), ("a", list(range(1, 9)))]


def test_a_large_request_shares_its_batches(batcher: Batcher, model: Model) -> None:
    occupy(batcher, model)
    large = batcher.submit("a", range(20))
    small = batcher.submit("a", [100, 101])
    model.may.set()
    assert large.result(10) == [2 * n for n in range(20)]
    assert small.result(10) == [200, 202]
    assert {100, 101} <= set(model.batches[1][1]), "the small one is in the first batch after it came"
    assert len(model.batches[1][1]) == 8
    assert [len(items) for _, items in model.batches] == [1, 8, 8, 6]


def test_kinds_are_not_mixed_and_none_waits_for_all_of_another(batcher: Batcher, model: Model) -> None:
    occupy(batcher, model)
    futures = [batcher.submit("a", range(10)), batcher.submit("b", range(10))]
    model.may.set()
    assert [future.result(10) for future in futures] == [[2 * n for n in range(10)]] * 2
    assert [kind for kind, _ in model.batches] == ["a", "a", "b", "a", "b"]


def test_a_full_queue_says_when_to_return(batcher: Batcher, model: Model) -> None:
    occupy(batcher, model)
    waiting = batcher.submit("a", range(40))
    with pytest.raises(FullError) as error:
        batcher.submit("a", [1])
    assert 1 <= error.value.retry_after <= 30
    assert batcher.waiting == 40
    assert waiting.cancel()
    model.may.set()
    assert batcher.submit("a", range(40)).result(10)
    assert batcher.waiting == 0


def test_a_request_that_was_given_up_is_not_read(batcher: Batcher, model: Model) -> None:
    occupy(batcher, model)
    given_up, other = batcher.submit("a", ["never"]), batcher.submit("a", [1])
    given_up.cancel()
    model.may.set()
    assert other.result(10) == [2]
    assert "never" not in [item for _, items in model.batches for item in items]


def test_one_bad_text_fails_its_own_request_alone(batcher: Batcher, model: Model) -> None:
    occupy(batcher, model)
    good, bad, last = batcher.submit("a", [1]), batcher.submit("a", ["bad"] * 20), batcher.submit("a", [2])
    model.may.set()
    assert (good.result(10), last.result(10)) == ([2], [4])
    with pytest.raises(ValueError, match="bad"):
        bad.result(10)
    assert batcher.waiting == 0


def test_closing_finishes_what_waits(model: Model) -> None:
    batcher = Batcher(model, batch_texts=2, wait_s=0, max_queue=10)
    futures = [batcher.submit("a", [n, n]) for n in range(3)]
    model.may.set()
    batcher.close(10)
    assert [future.result(0) for future in futures] == [[2 * n, 2 * n] for n in range(3)]
    with pytest.raises(ClosedError):
        batcher.submit("a", [1])


def test_a_batch_waits_only_while_another_request_is_on_its_way(model: Model) -> None:
    model.may.set()
    open_requests = [1]
    batcher = Batcher(model, batch_texts=8, wait_s=60, max_queue=10, others=lambda: open_requests[0])
    assert batcher.submit("a", [1]).result(10) == [2], "alone: it does not wait a minute"
    open_requests[0] = 2
    first = batcher.submit("a", [1])
    second = batcher.submit("a", [2])
    assert (first.result(10), second.result(10)) == ([2], [4])
    assert model.batches[1] == ("a", [1, 2])
    batcher.close(10)
