"""Locks between processes, and waiting for them: ``flock`` on small files.

A lock belongs to an open file and is released with the process that holds it, however it ends: no stale lock, no
reused pid. Child processes inherit it only if its descriptor is passed to them (``cdp.jobs.submit`` hands a job's lock
to its supervisor).
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdp.base.errors import WorkspaceError


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """Return a descriptor that holds the lock on ``path`` (created if absent), None if another process holds it.

    Closing it releases the lock. WorkspaceError if the file cannot be opened.
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
    """Return True if some process holds the exclusive lock on ``path``. WorkspaceError if it cannot be opened."""
    # Tested with a shared lock: processes that test at the same time are not taken for the holder.
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        # To call it free would make a running job look lost.
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
    """Hold the lock on ``path``. WorkspaceError, which names ``what`` and the holder, after ``wait_s`` seconds."""
    descriptor = wait_for_lock(path, what, wait_s=wait_s, shared=shared)
    try:
        yield
    finally:
        os.close(descriptor)


def wait_for_lock(path: Path, what: str, *, wait_s: float, shared: bool = False) -> int:
    """Return a descriptor like ``try_lock``, retrying for ``wait_s`` seconds; then WorkspaceError."""
    deadline = time.monotonic() + wait_s
    pause = 0.002
    while (descriptor := try_lock(path, shared=shared)) is None:
        if time.monotonic() >= deadline:
            raise WorkspaceError(
                f"{what} is busy: another process has held {path} for over {wait_s:g} seconds.",
                hint="Try again in a moment; if it goes on, end that process (fuser names it).",
            )
        time.sleep(pause * (0.5 + random.random()))
        pause = min(0.05, pause * 1.5)
    return descriptor
