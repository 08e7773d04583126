"""The processes of a worker, as its supervisor sees them: all descendants, wherever they moved.

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

_PR_SET_CHILD_SUBREAPER = 36


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
        found = psutil.Process().children(recursive=True)
        return [process.pid for process in found if process.is_running()]
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


def memory_kills() -> int:
    """How many processes the kernel has killed for memory in this control group so far; 0 where it does not say."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        with suppress(OSError, ValueError, IndexError):
            for line in Path(path).read_text(encoding="ascii").splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0
