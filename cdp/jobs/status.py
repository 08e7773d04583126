"""``status.json``: what the holder of ``alive.lock`` records about its job, and nobody else writes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from cdp.base.errors import WorkspaceError
from cdp.base.worker import release_reserve
from cdp.base.workspace import now, write_bytes, write_json
from cdp.jobs.place import Place
from cdp.jobs.records import read_record
from cdp.jobs.spec import read_spec

RESERVE_BYTES = 64 * 1024
"""Set aside from the submit until a job has ended, so that its end can be recorded on a disk that it has filled."""


def set_reserve(folder: Path) -> None:
    """Set the reserve aside before a job begins; WorkspaceError on a disk that has no room even for that."""
    write_bytes(folder / "reserve", bytes(RESERVE_BYTES))


class Status:
    """The status of one job, kept in memory and written whole at each change."""

    def __init__(self, folder: Path, values: dict[str, Any]) -> None:
        self.folder = folder
        self.values = values

    @classmethod
    def queued(cls, folder: Path, place: Place) -> Status:
        """The status of a new attempt at that place: the first, or one more after what is recorded already.
        WorkspaceError where the disk is full: nothing has begun, so the reserve stays for the end of what does."""
        earlier = read_record(folder / "status.json")
        history: list[dict[str, Any]] = []
        attempt = 1
        if isinstance(earlier, dict):
            attempt = int(earlier.get("attempt", 0)) + 1
            copied = ("attempt", "queued", "started", "ended", "seconds", "outcome", "devices", "exit_code", "signal",
                      "place", "host")  # fmt: skip
            ended = {key: earlier[key] for key in copied if key in earlier}
            ended["failure"] = (earlier.get("failure") or {}).get("message", "")
            history = [*earlier.get("history", []), ended]
        values = {"schema": 1, "phase": "queued", "attempt": attempt, "queued": now(), "history": history}
        if place.address:
            values["place"] = place.to_dict()
        write_json(folder / "status.json", values)
        return cls(folder, values)

    @classmethod
    def load(cls, folder: Path) -> Status:
        """The status as written; that of a first attempt if it is damaged."""
        values = read_record(folder / "status.json")
        if values is not None and "attempt" in values:
            return cls(folder, values)
        return cls.queued(folder, read_spec(folder).place)

    @property
    def attempt(self) -> int:
        return int(self.values["attempt"])

    @property
    def place(self) -> Place:
        return Place.from_dict(self.values.get("place"))

    def waiting(self, message: str) -> None:
        """Record what it waits for although its turn has come."""
        self.values["message"] = message
        self.write()

    def running(self, *, supervisor_pid: int, worker_pid: int, devices: tuple[str, ...], **facts: Any) -> None:
        """Record that the worker was started. ``started_clock`` is on this machine's monotonic clock; of a worker on
        another machine ``facts`` name the ``host``, and the ``clock_offset`` to add to its clock."""
        self.values.pop("message", None)
        self.values.update(
            phase="running",
            supervisor_pid=supervisor_pid,
            worker_pid=worker_pid,
            devices=list(devices),
            started=now(),
            started_clock=time.monotonic(),
            **facts,
        )
        self.write()

    def ended(self, outcome: str, **values: Any) -> None:
        """Record the end: outcome finished, stopped or failed, with message, failure, exit_code and signal."""
        self.values.pop("message", None)
        began = self.values.get("started_clock")
        seconds = round(max(0.0, time.monotonic() - began), 3) if began is not None else 0.0
        self.values.update(phase="ended", outcome=outcome, ended=now(), seconds=seconds, **values)
        self.write()

    def write(self) -> None:
        """Write ``status.json``; where the disk is full, the reserve is given up for it."""
        path = self.folder / "status.json"
        try:
            write_json(path, self.values)
        except WorkspaceError:
            release_reserve(self.folder)
            write_json(path, self.values)
