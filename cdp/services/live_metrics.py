"""The measures that a running job writes down, ready to be drawn again and again.

``metrics.jsonl`` grows by a line per step, and a page looks at it every two seconds. So each look reads only what is
new since the last one, and a curve of any length is drawn from at most ``POINTS`` of its points: of each stretch of
steps the lowest and the highest value, so that no spike is lost, and always the newest one.
"""

from __future__ import annotations

import json
import math
import os
import threading
from array import array
from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

POINTS = 1500
"""Most points of a curve: about one per pixel."""

KEPT = 16
"""Files whose state is held in memory, the least recently asked for go first: about 1 MB per 10,000 lines."""

IGNORED = ("step", "attempt", "time")


@dataclass(frozen=True, slots=True)
class Curve:
    """One measure over the steps, thinned: ``n`` is how many points there are in the file."""

    steps: list[int]
    values: list[float]
    n: int


@dataclass(slots=True)
class Series:
    """All points of one measure, each step once, in order."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, step: int, value: float) -> None:
        """Append; a step that comes again after a resume replaces what was written from there on."""
        if self.steps and step <= self.steps[-1]:
            self.cut(step)
        self.steps.append(step)
        self.values.append(value)

    def cut(self, step: int) -> None:
        """Forget the points from ``step`` on."""
        index = bisect_left(self.steps, step)
        del self.steps[index:], self.values[index:]

    def thinned(self, points: int) -> Curve:
        n = len(self.steps)
        if n <= points:
            return Curve(self.steps.tolist(), self.values.tolist(), n)
        chosen: list[int] = []
        stretches = max(1, points // 2 - 1)
        for i in range(stretches):
            stretch = range(i * n // stretches, (i + 1) * n // stretches)
            low, high = min(stretch, key=self.values.__getitem__), max(stretch, key=self.values.__getitem__)
            chosen += sorted({low, high})
        if chosen[-1] != n - 1:
            chosen.append(n - 1)
        return Curve([self.steps[p] for p in chosen], [self.values[p] for p in chosen], n)


@dataclass(slots=True)
class _File:
    """How far a file has been read, and what was in it."""

    inode: int
    offset: int = 0
    attempt: int = 1
    series: dict[str, Series] = field(default_factory=dict)


_files: OrderedDict[Path, _File] = OrderedDict()
_lock = threading.Lock()


def read(path: Path) -> dict[str, Series]:
    """Every measure in ``path`` by its name; of a file seen before only the new lines are read.

    Lines torn by a crash are skipped. Steps that an earlier attempt had logged beyond the checkpoint from which a
    later one went on are left out.
    """
    with _lock:
        try:
            with open(path, "rb") as file:
                stat = os.fstat(file.fileno())
                file_state = _files.get(path)
                if file_state is None or file_state.inode != stat.st_ino or file_state.offset > stat.st_size:
                    file_state = _files[path] = _File(stat.st_ino)
                _files.move_to_end(path)
                file.seek(file_state.offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    file_state.offset += len(line)
                    _take(file_state, line)
        except OSError:
            _files.pop(path, None)
            return {}
        while len(_files) > KEPT:
            _files.popitem(last=False)
        return file_state.series


def _take(file_state: _File, line: bytes) -> None:
    try:
        record = json.loads(line)
        step, attempt = int(record["step"]), int(record.get("attempt", 1))
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    if attempt > file_state.attempt:
        file_state.attempt = attempt
        for series in file_state.series.values():
            series.cut(step)
    for name, value in record.items():
        if name in IGNORED or isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if math.isfinite(value):
            file_state.series.setdefault(name, Series()).add(step, float(value))


def curve(path: Path, measure: str, *, points: int = POINTS) -> Curve:
    """One measure in ``path``, thinned to at most ``points`` points; empty where it was never written."""
    series_by_measure = read(path)
    with _lock:
        return series_by_measure[measure].thinned(points) if measure in series_by_measure else Curve([], [], 0)


def latest(path: Path) -> dict[str, float]:
    """The newest value of every measure in ``path``."""
    series_by_measure = read(path)
    with _lock:
        return {name: series.values[-1] for name, series in series_by_measure.items() if series.values}
