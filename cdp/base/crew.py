"""Work divided into parts that several processes do: what a stage may ask of them, whoever they are.

A stage is given a ``Crew`` by the worker that runs it. On a cluster it is Ray workers (``cdp.jobs.crew``); ``Alone`` is
this process. A ``task`` is a function of a module, so that another machine finds it by its name. It may be run again,
after the death of a node or in the next attempt: what it writes goes into the workspace in one step
(``workspace.write_bytes``), and a second run writes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from cdp.base.errors import ConfigError

VARIABLE = "CDP_CREW"
"""Tells a job's worker on a cluster how many Ray workers it has and what each of them has, as JSON."""

P = TypeVar("P")
R = TypeVar("R")


class Stopped(Exception):  # noqa: N818 - it is an answer to a request, not an error
    """Raised after someone asked to stop; what is done stays."""


class Crew(Protocol):
    """Several workers that do the parts of a task. ``size`` is how many, ``gpus`` how many GPUs each of them has."""

    @property
    def size(self) -> int: ...

    @property
    def gpus(self) -> int: ...

    def each(
        self,
        task: Callable[[P], R],
        parts: Iterable[P],
        *,
        should_stop: Callable[[], bool] | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[tuple[int, R]]:
        """(number of the part, what ``task`` returned for it), in the order in which they are done.

        Parts are drawn when a worker is about to be free: a generator never has more of them in memory than two for
        each worker. A part whose worker dies is done again by another. ``on_done`` hears the number of parts that are
        done, after each and every second while none is. What ``task`` raises comes up here as it is; CdpError with its
        message. ``Stopped`` once ``should_stop`` says so. Either ends what is under way.
        """
        ...


class Alone:
    """This process, which does one part after the other."""

    size = 1

    def __init__(self, gpus: int = 0) -> None:
        self.gpus = gpus

    def each(
        self,
        task: Callable[[P], R],
        parts: Iterable[P],
        *,
        should_stop: Callable[[], bool] | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[tuple[int, R]]:
        """As ``Crew.each`` says."""
        name_of(task)
        for number, part in enumerate(parts):
            if should_stop is not None and should_stop():
                raise Stopped
            result = task(part)
            if on_done is not None:
                on_done(number + 1)
            yield number, result


def name_of(task: Callable[..., Any]) -> str:
    """``module:function``, by which another machine finds a task; ConfigError for what it could not find."""
    module, name = getattr(task, "__module__", ""), getattr(task, "__qualname__", "")
    if not module or module == "__main__" or not name.isidentifier():
        raise ConfigError(f"{name or task!r} cannot be done by another process: it is no function of a module.")
    return f"{module}:{name}"


_kept: dict[str, tuple[Any, Any]] = {}


def kept(what: str, key: Any, make: Callable[[], R]) -> R:
    """What ``make`` returns, made once in this process for this ``key``; of each ``what`` ("model") only the newest is
    kept, and the one before is let go first."""
    if what in _kept and _kept[what][0] == key:
        found: R = _kept[what][1]
        return found
    _kept.pop(what, None)
    made = make()
    _kept[what] = key, made
    return made
