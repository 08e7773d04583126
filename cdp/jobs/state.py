"""A job's state from its files and locks; its processes: alive or not, signals, reaping orphans.

    queued ──► running ◄──► stalled            lock held
       │          │  │
       └──► stopping ┘                          lock held, or a worker that outlived its supervisor
              │
    stopped · finished · failed · lost          no process left

Liveness is "the lock is held" and nothing else, so no restart of app or machine needs recovery code. On a cluster the
lock is on the shared file system; only a job that the cluster has yet to start is queued without a held lock.

A job is alive while its supervisor or its worker's rank 0 holds a lock. Three cases escape the locks: a worker that is
importing torch before it takes its lock, an interpreter that is shutting down, and children of a killed worker. So if
both locks are free and no end is recorded, the process table decides: every process of a job has the job's folder in
its environment.

torchrun starts processes in sessions of their own, which no signal to a process group reaches. The supervisor therefore
adopts orphans (``PR_SET_CHILD_SUBREAPER``) and finds its descendants in the process table.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from cdp.base.errors import WorkspaceError
from cdp.base.locks import is_held
from cdp.base.workspace import disk_fault
from cdp.jobs.records import SUBMITTED, phase_of, read_record

# From a worker's launch to its first heartbeat (importing torch on a busy machine).
START_WITHIN_S = 300.0


class State(StrEnum):
    """The state of a job, as shown to people."""

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
        """True while a process of the job is alive."""
        return self in (State.QUEUED, State.RUNNING, State.STALLED, State.STOPPING)


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The contents of a job's files; None if a file is absent or damaged."""

    status: dict[str, Any] | None = None
    heartbeat: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    stop_requested: bool = False
    worker_alive: bool = False

    @classmethod
    def read(cls, folder: Path) -> JobFiles:
        """Read the files that ``derive`` needs. ``worker_alive`` is the worker's lock; see ``has_lock``."""
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
    """Return the state of a job. ``lock_held``: its supervisor is alive. ``now``: ``time.time()``, as in heartbeats."""
    status = files.status or {}
    phase = status.get("phase", "queued")
    if phase == "ended":
        return _ended(status)
    if phase == SUBMITTED and not files.stop_requested:
        return JobState(State.QUEUED, f"The cluster {status.get('cluster', '')} has yet to start it.")
    if not lock_held and phase != SUBMITTED:
        return _without_supervisor(files)
    if files.stop_requested:
        return JobState(State.STOPPING, "It saves its progress and ends." if phase == "running" else "")
    if phase == "queued":
        return JobState(State.QUEUED, str(status.get("message") or ""))

    silence, promised = _silence(files, now)
    if silence > promised:
        return JobState(
            State.STALLED,
            f"No heartbeat for {silence:.0f} seconds, expected within {promised:.0f}. See the log; stop it if it does "
            "not recover.",
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
    """Return the state of a job whose lock is free although no end was recorded: the worker's files decide."""
    if files.worker_alive:
        return JobState(State.STOPPING, "Its supervisor was lost; its remaining processes save their progress and end.")
    outcome, failure = files.current(files.outcome), files.current(files.failure)
    if outcome is not None and outcome.get("outcome") == "finished":
        return JobState(State.FINISHED)
    if failure is not None:
        return JobState(State.FAILED, failure=failure)
    if (files.status or {}).get("phase") == "running":
        text = "It was lost: its supervisor was killed or the machine went down."
    else:
        text = "It was lost before it started."
    return JobState(State.LOST, f"{text} Resume it to go on from its last checkpoint.")


def _silence(files: JobFiles, now: float) -> tuple[float, float]:
    """Return the seconds since this attempt's last heartbeat, and the seconds that the worker had promised."""
    heartbeat = files.current(files.heartbeat)
    status = files.status or {}
    if heartbeat is not None and isinstance(heartbeat.get("clock"), (int, float)):
        since, promised = float(heartbeat["clock"]), float(heartbeat.get("next_within_s", START_WITHIN_S))
    else:
        since, promised = float(status.get("started_clock", now)), START_WITHIN_S
    return max(0.0, now - since), promised


# The job's folder: set by the submitter for the supervisor, inherited by every process of the job.
JOB_VARIABLE = "CDP_JOB"

_PR_SET_CHILD_SUBREAPER = 36


def has_lock(folder: Path) -> bool:
    """Return True if the supervisor or the worker's rank 0 is alive."""
    return is_held(folder / "alive.lock") or is_held(folder / "worker.lock")


def has_process(folder: Path) -> bool:
    """Return True if any process of the job is alive."""
    return has_lock(folder) or bool(processes_of(folder))


def is_alive(folder: Path) -> bool:
    """Return True if any process of the job is alive, or a cluster has yet to start it."""
    return has_lock(folder) or phase_of(folder) == SUBMITTED or bool(processes_of(folder))


def processes_of(folder: Path) -> list[int]:
    """Return the pids of the processes of one job."""
    return by_job().get(os.path.realpath(folder), [])


def by_job() -> dict[str, list[int]]:
    """Return the pids of all processes of jobs but this one, by the job's folder. Takes some 10 ms."""
    import psutil

    by_folder: dict[str, list[int]] = {}
    for process in psutil.process_iter():
        try:
            folder = process.environ().get(JOB_VARIABLE, "")
        except psutil.Error:
            continue  # another user's, or ended meanwhile
        except OSError as error:
            if fault := disk_fault(error):
                raise WorkspaceError(f"The table of processes could not be read: {fault}.") from error
            continue
        if folder and process.pid != os.getpid():
            by_folder.setdefault(os.path.realpath(folder), []).append(process.pid)
    return by_folder


def adopt_orphans() -> None:
    """Make this process the parent of every orphan among its descendants (Linux only)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap() -> dict[int, int]:
    """Reap all children that have ended: pid to exit status, negative for a signal."""
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended[pid] = os.waitstatus_to_exitcode(status)
    return ended


def children_of(pid: int, *, recursive: bool = False) -> list[int]:
    """Return the pids of the living children, or all descendants, of a process."""
    import psutil

    with suppress(psutil.Error):
        return [p.pid for p in psutil.Process(pid).children(recursive=recursive) if p.is_running()]
    return []


def send_signal(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to processes; those that have ended are skipped."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
