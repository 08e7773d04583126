"""What a server takes while it is in use, sampled, and whether it is flat at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median

import psutil


@dataclass
class Sample:
    """One look at the server: seconds since the start, bytes, open handles, threads; and its descendants."""

    at: float
    memory: int
    handles: int
    threads: int
    processes: int
    zombies: int


@dataclass
class Watch:
    """Samples of a process every ``every_s`` seconds, taken by a thread of its own."""

    pid: int
    every_s: float = 5.0
    samples: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(psutil.NoSuchProcess):  # the test failed and stopped its server
            while not self._stop.wait(self.every_s):
                self.look()

    def look(self) -> Sample:
        server = psutil.Process(self.pid)
        below = server.children(recursive=True)
        zombies = 0
        for process in below:
            try:
                zombies += process.status() == psutil.STATUS_ZOMBIE
            except psutil.NoSuchProcess:
                continue
        sample = Sample(
            time.monotonic() - self._began, server.memory_info().rss, server.num_fds(), server.num_threads(),
            len(below), zombies,
        )  # fmt: skip
        self.samples.append(sample)
        return sample

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """The median of the slopes of all pairs (Theil–Sen): what a few bursts cannot turn."""
    pairs = [
        (values[j] - values[i]) / (times[j] - times[i])
        for i in range(len(times))
        for j in range(i + 1, len(times))
        if times[j] > times[i]
    ]
    return median(pairs) if pairs else 0.0


@dataclass(frozen=True)
class Trend:
    """The second half of a run: the level, and what the slope adds over that half. ``flat`` if it adds less than
    ``tolerance`` of the level, or less than ``least``."""

    name: str
    level: float
    grows_by: float
    allowed: float

    @property
    def flat(self) -> bool:
        return self.grows_by <= self.allowed


def trend(name: str, samples: Sequence[Sample], values: Sequence[float], *, tolerance: float, least: float) -> Trend:
    """See ``Trend``."""
    half = len(samples) // 2
    times = [sample.at for sample in samples[half:]]
    late = values[half:]
    level = median(late)
    grows_by = slope(times, late) * (times[-1] - times[0])
    return Trend(name, level, grows_by, max(tolerance * level, least))


def trends(samples: Sequence[Sample]) -> list[Trend]:
    """Memory may grow by 10 % or 40 MB over the second half, handles and threads by 10 % or 12."""
    return [
        trend("memory", samples, [float(s.memory) for s in samples], tolerance=0.1, least=40e6),
        trend("handles", samples, [float(s.handles) for s in samples], tolerance=0.1, least=12),
        trend("threads", samples, [float(s.threads) for s in samples], tolerance=0.1, least=12),
    ]
