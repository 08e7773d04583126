"""Locks between processes: ``flock`` on small files.

A lock belongs to an open file and vanishes with the process that holds it, however it ends: no stale lock, no pid to
mistake for another. Python opens files so that programs started later do not inherit them; a lock is inherited only
where its descriptor is passed on deliberately (``cdp.jobs.submit`` hands a job's lock to its supervisor).
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cdp.base.errors import WorkspaceError


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """A descriptor that holds the lock on ``path`` (made if absent), or None if another holds it.

    Close the descriptor to release the lock. WorkspaceError if the file cannot be opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise WorkspaceError.refused(path, "opened", error) from error
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_held(path: Path) -> bool:
    """Whether some process holds the exclusive lock on ``path``.

    The question is asked with a shared lock, so that any number may ask at once without being taken for the holder.
    WorkspaceError where the question cannot be asked: too many open files, no right to read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        # Without a descriptor nothing is known: to call it free would make a running job look lost.
        raise WorkspaceError(f"{path} could not be opened: {error.strerror or error}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def locked(path: Path, what: str, *, wait_s: float = 30.0, shared: bool = False) -> Iterator[None]:
    """Hold the lock on ``path`` for a moment; wait for it at most ``wait_s`` seconds.

    ``what`` is named in the WorkspaceError that ends a wait in vain, together with the file and its holder.
    """
    descriptor = wait_for_lock(path, what, wait_s=wait_s, shared=shared)
    try:
        yield
    finally:
        os.close(descriptor)


def wait_for_lock(path: Path, what: str, *, wait_s: float, shared: bool = False) -> int:
    """Like ``try_lock``, but ask again for ``wait_s`` seconds, then WorkspaceError."""
    deadline = time.monotonic() + wait_s
    pause = 0.002
    while (descriptor := try_lock(path, shared=shared)) is None:
        if time.monotonic() >= deadline:
            raise WorkspaceError(
                f"{what} is busy: {path} has been held by {holder(path)} for over {wait_s:g} seconds.",
                hint="Try again in a moment; if it goes on, end that process.",
            )
        time.sleep(pause * (0.5 + random.random()))
        pause = min(0.05, pause * 1.5)
    if not shared:
        with suppress(OSError):  # only a note for ``holder``; the disk may be full
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def holder(path: Path) -> str:
    """In words, which process holds the lock on ``path``: from the kernel's table, else as the holder noted."""
    pids: list[int] = []
    try:
        inode = path.stat().st_ino
        with open("/proc/locks", encoding="ascii") as table:
            for line in table:
                fields = line.split()
                if "FLOCK" in fields and "->" not in fields and fields[-3].endswith(f":{inode}"):
                    pids.append(int(fields[-4]))
    except (OSError, ValueError, IndexError):
        pass
    if not pids:
        try:
            pids = [int(path.read_text(encoding="ascii").strip())]
        except (OSError, ValueError):
            return "another process"
    shown = ", ".join(str(pid) for pid in sorted(set(pids)))
    return f"process {shown}" if len(set(pids)) == 1 else f"processes {shown}"
