"""Crews without Ray, for tests of work that is divided: several at once in this process, one that does the last part
first and each twice, and one whose workers die."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from cdp.base.crew import Alone, Stopped, name_of


class Backwards:
    """Does the last part first, and each part twice. ``parts`` are the sizes of what travelled, in bytes."""

    def __init__(self, size: int = 2, gpus: int = 0) -> None:
        self.size, self.gpus = size, gpus
        self.parts: list[int] = []

    def each(
        self,
        task: Callable[[Any], Any],
        parts: Iterable[Any],
        *,
        should_stop: Callable[[], bool] | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        name_of(task)
        packed = [pickle.dumps(part) for part in parts]
        self.parts += map(len, packed)
        for done, number in enumerate(reversed(range(len(packed)))):
            if should_stop is not None and should_stop():
                raise Stopped
            results = [pickle.dumps(task(pickle.loads(packed[number]))) for _ in range(2)]
            if on_done is not None:
                on_done(done + 1)
            yield number, pickle.loads(results[1])


class Several(Alone):
    """Threads in place of Ray workers: ``size`` parts at once, each drawn when one is free."""

    def __init__(self, size: int, gpus: int = 0) -> None:
        super().__init__(gpus)
        self.size = size
        self.n_parts = 0

    def each(
        self,
        task: Callable[[Any], Any],
        parts: Iterable[Any],
        *,
        should_stop: Callable[[], bool] | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        name_of(task)
        upcoming = enumerate(parts)
        with ThreadPoolExecutor(self.size) as pool:
            under_way: dict[Future[Any], int] = {}
            done = 0
            while True:
                while len(under_way) < self.size and (drawn := next(upcoming, None)) is not None:
                    self.n_parts += 1
                    under_way[pool.submit(self._do, task, drawn[1])] = drawn[0]
                if not under_way:
                    return
                if should_stop is not None and should_stop():
                    raise Stopped
                for future in wait(under_way, timeout=0.02, return_when=FIRST_COMPLETED).done:
                    done += 1
                    number = under_way.pop(future)
                    if on_done is not None:
                        on_done(done)
                    yield number, future.result()

    def _do(self, task: Callable[[Any], Any], part: Any) -> Any:
        return task(part)


class Death(BaseException):
    """What ends a worker in the midst of its part, and nothing catches."""


class Mortal(Several):
    """Its workers die where a test has them raise ``Death``; their part is done again."""

    n_deaths = 0

    def _do(self, task: Callable[[Any], Any], part: Any) -> Any:
        while True:
            try:
                return task(part)
            except Death:
                self.n_deaths += 1
