"""The processes of a job: whether any is alive, and how its supervisor finds, signals and reaps them.

Liveness is two locks: the supervisor's and that of the worker's first rank. They say nothing in three moments: before
a worker has taken its own (it imports torch for seconds), while its interpreter takes itself down, and where a worker
was killed and what it had started was not. So once both are free and no end is recorded, the process table decides:
every process of a job carries the job's folder in its environment, wherever it moved.

``accelerate launch`` and torchrun put processes between supervisor and worker, some in sessions of their own, so a
process group does not reach them all. The supervisor therefore adopts orphans (``PR_SET_CHILD_SUBREAPER``) and finds
its descendants in the process table.
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
from cdp.jobs.records import SUBMITTED, read_record

# Set by the submitter for the supervisor, and inherited by every process of the job: the job's folder.
VARIABLE = "CDP_JOB"

_PR_SET_CHILD_SUBREAPER = 36


def has_lock(folder: Path) -> bool:
    """Return whether the supervisor or the worker's first rank lives: one look at two locks."""
    return is_held(folder / "alive.lock") or is_held(folder / "worker.lock")


def is_alive(folder: Path) -> bool:
    """Return whether any process of the job lives, or a cluster has yet to start it.

    The process table is read only where no lock is held.
    """
    if has_lock(folder):
        return True
    status = read_record(folder / "status.json") or {}
    return status.get("phase") == SUBMITTED or bool(processes_of(folder))


def processes_of(folder: Path) -> list[int]:
    """Return the pids of the processes of one job."""
    return by_job().get(os.path.realpath(folder), [])


def by_job() -> dict[str, list[int]]:
    """The pids of all processes of jobs, by the job's folder; some 10 ms. This process itself is left out."""
    import psutil

    by_folder: dict[str, list[int]] = {}
    for process in psutil.process_iter():
        try:
            folder = process.environ().get(VARIABLE, "")
        except psutil.Error:
            continue  # another user's, or gone meanwhile; of one that has ended (a zombie) nothing is left to read
        except OSError as error:
            if fault := disk_fault(error):
                raise WorkspaceError(f"The table of processes could not be read: {fault}.") from error
            continue
        if folder and process.pid != os.getpid():
            by_folder.setdefault(os.path.realpath(folder), []).append(process.pid)
    return by_folder


def adopt_orphans() -> None:
    """Make this process the parent of every orphan among its descendants (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap() -> dict[int, int]:
    """Collect every child that has ended: pid to exit status, negative for a signal, as subprocess does."""
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended[pid] = os.waitstatus_to_exitcode(status)
    return ended


def descendants() -> list[int]:
    """The pids of all living descendants of this process."""
    import psutil

    with suppress(psutil.Error):
        children = psutil.Process().children(recursive=True)
        return [process.pid for process in children if process.is_running()]
    return []


def children_of(pid: int) -> list[int]:
    """The pids of the living children of one process."""
    import psutil

    with suppress(psutil.Error):
        return [process.pid for process in psutil.Process(pid).children()]
    return []


def send(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to processes, some of which may be gone already."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def memory_kills(root: Path = Path("/")) -> int:
    """How many processes the kernel has killed for lack of memory so far; 0 where nothing tells.

    Counted in the control group of this process (version 2), else on the whole machine; ``root`` is where the kernel's
    files are read.
    """
    group = ""
    with suppress(OSError, IndexError):
        group = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()[-1].split("::/", 1)[1]
    groups = root / "sys/fs/cgroup"
    # Inside a container the group's own folder may be mounted at the top.
    for path in (groups / group / "memory.events", groups / "memory.events", root / "proc/vmstat"):
        with suppress(OSError, ValueError):
            for line in path.read_text(encoding="ascii").splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
    return 0
