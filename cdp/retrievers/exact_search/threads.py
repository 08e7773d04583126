"""One processor per block: each thread multiplies its block alone and looks at the product while it is in its cache.

A library that spreads one product over all processors brings them together at its end; what follows (finding the few
entries that count) then runs on one of them, on data that has left the cache, and two libraries' threads wait for each
other by spinning. Threads of ours with one library thread each have none of that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_STARTING = threading.Lock()


def processors() -> int:
    """How many threads torch was told to use, by OMP_NUM_THREADS or the number of processors."""
    import torch

    with _STARTING:
        return int(torch.get_num_threads())


def each(
    work: Callable[[T], object], items: Sequence[T], threads: int, done: Callable[[T], object] = lambda item: None
) -> None:
    """``work`` on every item, taken in their order, in so many threads; ``done`` in the calling thread after each.

    Whatever ``work`` raises is raised here, of several the one of the earliest item; so is what ``done`` raises. No
    item is begun after that, and no thread is left.
    """
    if threads < 2 or len(items) < 2:
        for item in items:
            work(item)
            done(item)
        return
    crew = _Crew(work, items)
    crew.start(min(threads, len(items)))
    try:
        for _ in items:
            number, error = crew.finished.get()
            if error is not None:
                break
            done(items[number])
    finally:
        crew.end()
    crew.raise_first()


def alone(work: Callable[[], R]) -> R:
    """What ``work`` returns in a thread to which the libraries give one processor."""
    results: list[R] = []
    crew = _Crew(lambda call: results.append(call()), [work])
    crew.start(1)
    crew.finished.get()
    crew.end()
    crew.raise_first()
    return results[0]


class _Crew(Generic[T]):
    def __init__(self, work: Callable[[T], object], items: Sequence[T]) -> None:
        self.work, self.items = work, items
        self.upcoming = iter(range(len(items)))
        self.ended = threading.Event()
        self.finished: SimpleQueue[tuple[int, BaseException | None]] = SimpleQueue()
        self.errors: dict[int, BaseException] = {}

    def start(self, count: int) -> None:
        import torch

        ready = threading.Barrier(count + 1)
        self.members = [threading.Thread(target=self._run, args=(ready,), daemon=True) for _ in range(count)]
        # torch's setting is a thread's own, but threads that come later begin with the last one set anywhere.
        with _STARTING:
            before = torch.get_num_threads()
            for member in self.members:
                member.start()
            ready.wait()
            torch.set_num_threads(before)

    def _run(self, ready: threading.Barrier) -> None:
        import torch

        torch.get_num_threads()  # a thread takes on the process's number at its first question or product
        torch.set_num_threads(1)
        ready.wait()
        for number in self.upcoming:
            if self.ended.is_set():
                return
            try:
                self.work(self.items[number])
            except BaseException as error:  # goes on in the calling thread
                self.errors[number] = error
                self.ended.set()
                self.finished.put((number, error))
                return
            self.finished.put((number, None))

    def end(self) -> None:
        self.ended.set()
        for member in self.members:
            member.join()

    def raise_first(self) -> None:
        if self.errors:
            raise self.errors[min(self.errors)]


class Shared:
    """A setting of the whole process that several threads want at once: made by the first, undone by the last."""

    def __init__(self, setting: Callable[[], AbstractContextManager[object]]) -> None:
        self.setting = setting
        self.users = 0
        self.lock = threading.Lock()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            if not self.users:
                self.made = self.setting()
                self.made.__enter__()
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if not self.users:
                    self.made.__exit__(None, None, None)
