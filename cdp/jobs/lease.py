"""What the two sides of a job on a cluster tell each other, through files in the job's folder.

``lease.json``   the supervisor, where the job was submitted: renewed every second, it says that the attempt is wanted,
                 and whether it should stop
``node.json``    the node that the worker runs on: renewed every second, it says that it lives, and in the end how the
                 worker ended
``node.lock``    held by the node's process for its life; the worker ends when it is free

Each side counts its renewals, and each watches on its own clock whether the other's count moves: neither process ids
nor clocks of two machines are ever compared. What an earlier attempt left is known by its number.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cdp import __version__
from cdp.base.errors import ClusterError, ConfigError
from cdp.base.locks import is_held
from cdp.base.workspace import now, write_json
from cdp.jobs.records import read_record

NODE, LEASE, LOCK = "node.json", "lease.json", "node.lock"

RENEW_S = 1.0

SILENCE_VARIABLE = "CDP_CLUSTER_SILENCE_S"

UNWANTED_AFTER_S = 60.0
"""A node whose lease is not renewed for so long saves what it has and ends: nobody else would see its end."""

SHOWN_WITHIN_S = 10.0
"""How long a file server may take to show what another machine has just written."""

OVER_AFTER_S = 4.0
"""A node of an earlier attempt whose count stands still for so long, and whose locks are free, is gone."""


def silence_s() -> float:
    """Seconds without a sign of life after which a node, or a cluster's head, counts as dead."""
    text = os.environ.get(SILENCE_VARIABLE, "").strip() or "10"
    try:
        return max(2.0, float(text))
    except ValueError:
        raise ConfigError(f"{SILENCE_VARIABLE} must be a number of seconds, not {text!r}.") from None


class Pulse:
    """One side's file: its facts with a count that goes up at each renewal."""

    def __init__(self, path: Path, attempt: int) -> None:
        self.path, self.attempt = path, attempt
        self.beat = 0
        self._written = 0.0

    def renew(self, *, at_once: bool = False, **facts: Any) -> None:
        """Write the file if it is time to."""
        moment = time.monotonic()
        if not at_once and moment - self._written < RENEW_S:
            return
        self._written = moment
        self.beat += 1
        write_json(self.path, {"attempt": self.attempt, "beat": self.beat, "time": now(), "clock": moment, **facts})


class Watch:
    """The other side's file: what it says, and for how long its count has not moved."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record: dict[str, Any] = {}
        self._moved = time.monotonic()

    def look(self) -> dict[str, Any]:
        """The newest record; the one before where it cannot be read just now."""
        record = read_record(self.path) or self.record
        if (record.get("attempt"), record.get("beat")) != (self.record.get("attempt"), self.record.get("beat")):
            self._moved = time.monotonic()
        self.record = record
        return record

    @property
    def silent_s(self) -> float:
        return time.monotonic() - self._moved


def lease(folder: Path, attempt: int) -> Pulse:
    return Pulse(folder / LEASE, attempt)


def about_this_node() -> dict[str, Any]:
    """What a node says of itself."""
    import platform

    return {"host": socket.gethostname(), "version": __version__, "python": platform.python_version()}


def wait_until_over(folder: Path, attempt: int, stop_requested: Callable[[], bool], patience_s: float) -> None:
    """See that no node is at work on an earlier attempt: two workers must never write into one folder.

    A node hears from the lease that another attempt has begun, and ends. ClusterError where one goes on all the same.
    """
    watch = Watch(folder / NODE)
    if not watch.look() or watch.record.get("phase") == "ended" or watch.record.get("attempt") == attempt:
        return
    pulse = lease(folder, attempt)
    deadline = time.monotonic() + patience_s
    while not stop_requested():
        pulse.renew()
        if watch.look().get("phase") == "ended":
            return
        if watch.silent_s > OVER_AFTER_S and not (is_held(folder / LOCK) or is_held(folder / "worker.lock")):
            return
        if time.monotonic() > deadline:
            raise ClusterError(
                f"The attempt before this one is still at work on {watch.record.get('host', 'another machine')}.",
                hint="Wait until it has ended, then resume; if it never does, end its processes there.",
            )
        time.sleep(0.1)


def wait_until_shown(folder: Path) -> None:
    """Until this node sees the job's folder; ClusterError where it does not in time."""
    deadline = time.monotonic() + SHOWN_WITHIN_S
    while not (folder / "spec.json").is_file():
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{about_this_node()['host']} does not see the job's folder {folder}.",
                hint="The workspace has to lie on a file system that every node has under the same path.",
            )
        time.sleep(0.2)
