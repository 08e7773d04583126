"""Calling a function on a stream of items from several threads, with a bounded number of them under way."""

from __future__ import annotations

import queue
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

TICK_S = 0.5


def map_unordered(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    *,
    tick: Callable[[], None],
    cancel: Callable[[], None],
) -> Generator[Result, None, None]:
    """Results as they come; at most two items per worker are taken from ``items`` ahead of their results.

    ``tick`` is called at least every half second while results are waited for. When a call raises, ``cancel`` is
    called, the calls under way are waited for and their results still given, and then the first error is raised.
    Close the iterator if it is left early. With no workers everything runs in the caller's thread.
    """
    if workers == 0:
        yield from map(function, items)
        return
    done: queue.SimpleQueue[Future[Result]] = queue.SimpleQueue()
    failure: BaseException | None = None
    waiting = 0
    source = iter(items)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="synthesis")
    try:
        while True:
            while failure is None and waiting < 2 * workers:
                try:
                    item = next(source)
                except StopIteration:
                    break
                pool.submit(function, item).add_done_callback(done.put)
                waiting += 1
            if not waiting:
                break
            try:
                future = done.get(timeout=TICK_S)
            except queue.Empty:
                tick()
                continue
            waiting -= 1
            if future.cancelled():
                continue
            error = future.exception()
            if error is None:
                yield future.result()
            elif failure is None:
                failure = error
                cancel()
                pool.shutdown(wait=False, cancel_futures=True)
    finally:
        if waiting:
            cancel()
        pool.shutdown(wait=True, cancel_futures=True)
    if failure is not None:
        raise failure
