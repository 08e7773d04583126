"""A crew in this process that does what a real one may: parts travel, end in any order, and may be done twice."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from cdp.base.crew import Stopped, name_of

P = TypeVar("P")
R = TypeVar("R")


class Backwards:
    """Does the last part first, and each part twice. ``parts`` are the sizes of what travelled, in bytes."""

    def __init__(self, size: int = 2, gpus: int = 0) -> None:
        self.size, self.gpus = size, gpus
        self.parts: list[int] = []

    def each(
        self,
        task: Callable[[P], R],
        parts: Iterable[P],
        *,
        should_stop: Callable[[], bool] | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[tuple[int, R]]:
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
