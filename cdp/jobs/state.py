"""The state of a job, derived from what is on disk. ``derive`` is pure; app and command line both call it.

    queued ──► running ◄──► stalled            lock held
       │          │  │
       └──► stopping ┘                          lock held, or a worker that outlived its supervisor
              │
    stopped · finished · failed · lost          nothing runs any more

Because liveness is "the lock is held" and nothing else, no restart of app or machine needs any recovery code. On a
cluster the lock is that of a file system which all nodes share; only a job that the cluster has yet to start is queued
while nobody holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from cdp.base.locks import is_held
from cdp.jobs.records import SUBMITTED, read_record

# How long a worker may take from its launch to its first heartbeat (importing torch on a busy machine).
START_WITHIN_S = 300.0


class State(StrEnum):
    """What a job is doing, as shown to people."""

    QUEUED = "queued"
    RUNNING = "running"
    STALLED = "stalled"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"

    @property
    def active(self) -> bool:
        """True while a process of the job is alive: it may still change by itself."""
        return self in (State.QUEUED, State.RUNNING, State.STALLED, State.STOPPING)


@dataclass(frozen=True, slots=True)
class JobFiles:
    """What the files in a job's folder say; None where a file is absent or damaged."""

    status: dict[str, Any] | None = None
    heartbeat: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    stop_requested: bool = False
    worker_alive: bool = False

    @classmethod
    def read(cls, folder: Path) -> JobFiles:
        """Read what ``derive`` needs. Files of an ended job that no longer matter are not opened.

        ``worker_alive`` is what the worker's lock says; see ``processes.processes_of`` for what it cannot say.
        """
        status = read_record(folder / "status.json")
        if status is not None and status.get("phase") == "ended":
            return cls(status=status, heartbeat=read_record(folder / "heartbeat.json"))
        return cls(
            status=status,
            heartbeat=read_record(folder / "heartbeat.json"),
            failure=read_record(folder / "failure.json"),
            outcome=read_record(folder / "outcome.json"),
            stop_requested=(folder / "stop.request").exists(),
            worker_alive=is_held(folder / "worker.lock"),
        )

    @property
    def attempt(self) -> int:
        return int((self.status or {}).get("attempt", 1))

    def current(self, record: dict[str, Any] | None) -> dict[str, Any] | None:
        """``record`` if it was written by the present attempt, else None."""
        return record if record is not None and record.get("attempt", 1) == self.attempt else None


@dataclass(frozen=True, slots=True)
class JobState:
    """A state and, where it needs one, a sentence that explains it."""

    state: State
    message: str = ""
    failure: dict[str, Any] | None = None


def derive(files: JobFiles, lock_held: bool, now: float) -> JobState:
    """The state of a job.

    ``lock_held`` says whether its supervisor lives, ``now`` is ``time.time()``: the clock by which heartbeats and
    launches are stamped ("clock"). The lock decides before any time does.
    """
    status = files.status or {}
    phase = status.get("phase", "queued")
    if phase == "ended":
        return _ended(status)
    if phase == SUBMITTED and not files.stop_requested:
        return JobState(State.QUEUED, f"The cluster {status.get('cluster', '')} has yet to start it.")
    if not lock_held and phase != SUBMITTED:
        return _without_supervisor(files)
    if files.stop_requested:
        return JobState(State.STOPPING, "It saves what it has and ends." if phase == "running" else "")
    if phase == "queued":
        return JobState(State.QUEUED, str(status.get("message") or ""))
    silence, promised = _silence(files, now)
    if silence > promised:
        return JobState(
            State.STALLED,
            f"No sign of life for {silence:.0f} seconds, expected within {promised:.0f}. See the log; stop it if it "
            "does not come back.",
        )
    return JobState(State.RUNNING)


def _ended(status: dict[str, Any]) -> JobState:
    message = str(status.get("message", ""))
    outcome = status.get("outcome")
    if outcome == "finished":
        return JobState(State.FINISHED, message)
    if outcome == "stopped":
        return JobState(State.STOPPED, message)
    return JobState(State.FAILED, message, status.get("failure"))


def _without_supervisor(files: JobFiles) -> JobState:
    """Nobody holds the lock, and no end was recorded: what the worker left behind tells the rest."""
    if files.worker_alive:
        return JobState(State.STOPPING, "Its supervisor is gone; what is still at work saves what it has and ends.")
    outcome, failure = files.current(files.outcome), files.current(files.failure)
    if outcome is not None and outcome.get("outcome") == "finished":
        return JobState(State.FINISHED)
    if failure is not None:
        return JobState(State.FAILED, failure=failure)
    if (files.status or {}).get("phase") == "running":
        text = "It was cut off: its supervisor was killed or the machine went down."
    else:
        text = "It was cut off before it started."
    return JobState(State.LOST, f"{text} Resume it to go on from its last checkpoint.")


def _silence(files: JobFiles, now: float) -> tuple[float, float]:
    """Seconds since the last sign of life of this attempt, and how long the worker had said it may take."""
    heartbeat = files.current(files.heartbeat)
    status = files.status or {}
    if heartbeat is not None and isinstance(heartbeat.get("clock"), (int, float)):
        since, promised = float(heartbeat["clock"]), float(heartbeat.get("next_within_s", START_WITHIN_S))
    else:
        since, promised = float(status.get("started_clock", now)), START_WITHIN_S
    return max(0.0, now - since), promised
