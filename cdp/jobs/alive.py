"""Whether anything of a job is still alive, and its processes where its supervisor is gone.

Liveness is two locks: the supervisor's and that of the worker's first rank. They say nothing in three moments: before
a worker has taken its own (it imports torch for seconds), while its interpreter takes itself down, and where a worker
was killed and what it had started was not. So once both are free and no end is recorded, the process table decides:
every process of a job carries the job's folder in its environment, wherever it moved.
"""

from __future__ import annotations

import os
from pathlib import Path

from cdp.base.errors import WorkspaceError
from cdp.base.locks import is_held
from cdp.base.workspace import disk_fault

VARIABLE = "CDP_JOB"
"""Set by the submitter for the supervisor, and inherited by every process of the job: the job's folder."""


def has_lock(folder: Path) -> bool:
    """Whether the supervisor or the worker's first rank lives: one look at two locks."""
    return is_held(folder / "alive.lock") or is_held(folder / "worker.lock")


def is_alive(folder: Path) -> bool:
    """Whether any process of the job lives. The process table is read only where no lock is held."""
    return has_lock(folder) or bool(processes_of(folder))


def processes_of(folder: Path) -> list[int]:
    """The pids of the processes of one job."""
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
