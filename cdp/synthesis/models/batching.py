"""Calls from many threads, answered together: those of similar length in one batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Result = TypeVar("Result")
Item = TypeVar("Item")

GATHER_S = 0.02
"""How long the first call of a batch waits for others to come."""


@dataclass
class _Call(Generic[Item, Result]):
    item: Item
    size: int
    group: Hashable
    future: Future[Result] = field(default_factory=Future)


class Batcher(Generic[Item, Result]):
    """``answer`` maps a list of items of one group to as many results, in the thread of one of the callers.

    The call that has waited longest is always in the next batch; those nearest to it in size fill it up, so that little
    is padded and nobody waits for ever.
    """

    def __init__(self, answer: Callable[[Sequence[Item]], Sequence[Result]], batch_size: int) -> None:
        self._answer = answer
        self._batch_size = batch_size
        self._waiting: list[_Call[Item, Result]] = []
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._cancelled = threading.Event()

    def __call__(self, item: Item, size: int, group: Hashable = None) -> Result:
        """The result for one item of that size; raises what ``answer`` raises for its batch."""
        call: _Call[Item, Result] = _Call(item, size, group)
        with self._lock:
            self._waiting.append(call)
        while not call.future.done():
            with self._turn:
                if not call.future.done():
                    self._cancelled.wait(GATHER_S)
                    self._serve()
        return call.future.result()

    def cancel(self, error: Exception) -> None:
        """Every call that waits, or comes later, ends with ``error``."""
        self._cancelled.set()
        with self._lock:
            left, self._waiting = self._waiting, []
        for call in left:
            call.future.set_exception(error)

    def _serve(self) -> None:
        batch = self._take()
        if not batch:
            return
        try:
            results = self._answer([call.item for call in batch])
        except BaseException as error:
            for call in batch:
                call.future.set_exception(error)
            return
        for call, result in zip(batch, results, strict=True):
            call.future.set_result(result)

    def _take(self) -> list[_Call[Item, Result]]:
        with self._lock:
            if not self._waiting:
                return []
            oldest = self._waiting[0]
            alike = [call for call in self._waiting if call.group == oldest.group]
            alike.sort(key=lambda call: (abs(call.size - oldest.size), call is not oldest))
            batch = alike[: self._batch_size]
            batch_ids = {id(call) for call in batch}
            self._waiting = [call for call in self._waiting if id(call) not in batch_ids]
            return batch
