"""The texts of many requests, read together: one thread, one queue with an end.

A model reads 64 short texts in little more time than one. So whatever has arrived while it was busy becomes its next
batch; large requests share each batch with the small ones beside them, so that nobody waits for 2,000 texts of another.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

SLOWEST = 30
"""Seconds: the longest time after which somebody is told to try again."""


class FullError(Exception):
    """So many texts wait that a further request would only wait in vain. ``retry_after`` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("The queue is full.")
        self.retry_after = retry_after


class ClosedError(Exception):
    """The server is stopping and takes nothing new."""


@dataclass(eq=False)
class _Work:
    """One request's texts: ``results[:done]`` are there, ``taken`` of the texts have been given to the model."""

    kind: str
    items: Sequence[Any]
    future: Future[list[Any]]
    arrived: float
    taken: int = 0
    results: list[Any] = field(default_factory=list)

    @property
    def left(self) -> int:
        return len(self.items) - self.taken


class Batcher:
    """Calls ``run(kind, items)``, which gives one result per item, with items of as many requests as wait.

    ``others`` says how many requests are open, whether their texts wait here already or are still on their way: a batch
    waits ``wait_s`` only for those. ``observe(kind, texts, seconds)`` hears of each batch.
    """

    def __init__(
        self,
        run: Callable[[str, list[Any]], Sequence[Any]],
        *,
        batch_texts: int,
        wait_s: float,
        max_queue: int,
        others: Callable[[], int] = lambda: 0,
        observe: Callable[[str, int, float], None] = lambda kind, texts, seconds: None,
    ) -> None:
        self.run, self.others, self.observe = run, others, observe
        self.batch_texts, self.wait_s, self.max_queue = batch_texts, wait_s, max_queue
        self._pending: deque[_Work] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._closing = False
        self._seconds_per_text = 0.01  # until the first batch has been measured
        self._thread = threading.Thread(target=self._work, name="encoder", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Texts that no batch has taken yet."""
        return self._waiting

    def submit(self, kind: str, items: Sequence[Any]) -> Future[list[Any]]:
        """The results of these items, in their order. FullError, ClosedError; the future has whatever ``run`` raises.
        Cancelled, what is left of it is not read any more."""
        future: Future[list[Any]] = Future()
        with self._changed:
            if self._closing:
                raise ClosedError
            if self._waiting + len(items) > self.max_queue:
                raise FullError(min(SLOWEST, max(1, math.ceil(self._waiting * self._seconds_per_text))))
            work = _Work(kind, items, future, time.monotonic())
            self._pending.append(work)
            self._waiting += len(items)
            self._changed.notify()
        future.add_done_callback(lambda done: self._drop(work) if done.cancelled() else None)
        return future

    def _drop(self, work: _Work) -> None:
        with self._changed:
            if work in self._pending:
                self._pending.remove(work)
                self._waiting -= work.left

    def close(self, timeout: float | None = None) -> None:
        """Take nothing new, finish what waits, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout)

    def _work(self) -> None:
        while True:
            with self._changed:
                batch = self._next()
            if batch is None:
                return
            self._run(*batch)

    def _next(self) -> tuple[str, list[tuple[_Work, list[Any]]]] | None:
        """The next batch: of each request some of its items, all of one kind. None once there will be none."""
        while not self._pending:
            if self._closing:
                return None
            self._changed.wait()
        until = self._pending[0].arrived + self.wait_s
        while self._waiting < self.batch_texts and self.others() > len(self._pending) and not self._closing:
            left = until - time.monotonic()
            if left <= 0:
                break
            self._changed.wait(left)
        return self._take() if self._pending else self._next()  # who waited may have left meanwhile

    def _take(self) -> tuple[str, list[tuple[_Work, list[Any]]]]:
        """The oldest request's kind, and a fair share of the batch for each request of it; who has more to come goes to
        the end of the queue."""
        kind = self._pending[0].kind
        same = [work for work in self._pending if work.kind == kind][: self.batch_texts]
        shares = dict.fromkeys(same, 0)
        room = self.batch_texts
        while room and (open_ := [work for work in same if work.left > shares[work]]):
            each = max(1, room // len(open_))
            for work in open_[:room]:
                more = min(each, work.left - shares[work])
                shares[work] += more
                room -= more
        parts = []
        for work, share in shares.items():
            self._pending.remove(work)
            parts.append((work, list(work.items[work.taken : work.taken + share])))
            work.taken += share
            self._waiting -= share
            if work.left:
                self._pending.append(work)
        return kind, parts

    def _run(self, kind: str, parts: list[tuple[_Work, list[Any]]]) -> None:
        items = [item for _, part in parts for item in part]
        began = time.perf_counter()
        try:
            results = self.run(kind, items)
        except Exception as error:
            if len(parts) == 1:
                self._fail(parts[0][0], error)
            else:
                for alone in parts:  # one request's text must not spoil those of the others
                    self._run(kind, [alone])
            return
        seconds = time.perf_counter() - began
        self._seconds_per_text += 0.2 * (seconds / len(items) - self._seconds_per_text)
        self.observe(kind, len(items), seconds)
        at = 0
        for work, part in parts:
            work.results += results[at : at + len(part)]
            at += len(part)
            if len(work.results) == len(work.items) and work.future.set_running_or_notify_cancel():
                work.future.set_result(work.results)

    def _fail(self, work: _Work, error: Exception) -> None:
        self._drop(work)
        if work.future.set_running_or_notify_cancel():
            work.future.set_exception(error)
