"""The processes of a job: is it alive, signals, reaping orphans.

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
from pathlib import Path

from cdp.base.errors import WorkspaceError
from cdp.base.locks import is_held
from cdp.base.workspace import disk_fault
from cdp.jobs.records import SUBMITTED, phase_of

# The job's folder: set by the submitter for the supervisor, inherited by every process of the job.
VARIABLE = "CDP_JOB"

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
            folder = process.environ().get(VARIABLE, "")
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


def send(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to processes; those that have ended are skipped."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
