"""Locks between processes (``flock``), waiting for them; staging folders: new data whole or not at all, leftovers.

A lock belongs to an open file and is released with the process that holds it, however it ends: no stale lock, no
reused pid. Child processes inherit it only if its descriptor is passed to them (``cdp.jobs.submit`` hands a job's lock
to its supervisor).

::

    with staging(workspace.queries) as folder:
        …write into folder / "set"…
        (folder / "set").rename(workspace.queries / "mine-1234")

Names are random, so any number of processes may stage at once. Each folder has a lock beside it: folders of killed
processes are removed by the next ``staging``.
"""

from __future__ import annotations

import fcntl
import os
import random
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cdp.base.errors import InputError, WorkspaceError


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


PREFIX = ".incoming-"


@contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """Yield an empty folder in ``parent``, removed at the end. WorkspaceError if it cannot be made."""
    clean(parent)
    name = f"{PREFIX}{secrets.token_hex(8)}"
    folder, lock = parent / name, parent / f"{name}.lock"
    # Locked before it exists: other processes never see the folder without its lock.
    descriptor = try_lock(lock)

    try:
        try:
            folder.mkdir()
        except OSError as error:
            raise WorkspaceError.refused(folder, "made", error) from error

        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)

        if not folder.exists():  # else the lock marks it for removal
            with suppress(OSError):
                lock.unlink()

        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """Yield a place for a file or folder, which takes its name at the end. InputError if something has that name."""
    _check_free(target)
    target.parent.mkdir(parents=True, exist_ok=True)

    with staging(target.parent) as folder:
        yield folder / target.name
        _check_free(target)
        os.rename(folder / target.name, target)


def _check_free(target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(f"{target} is there already.", hint="Choose another name or remove it.")


def remove(folder: Path) -> None:
    """Remove a folder, at once for readers: it is renamed first. WorkspaceError where the disk refuses."""
    try:
        with staging(folder.parent) as doomed, suppress(FileNotFoundError):  # another process may be faster
            folder.rename(doomed / "removed")
    except OSError as error:
        raise WorkspaceError.refused(folder, "removed", error) from error


def clean(parent: Path) -> None:
    """Remove folders of killed processes from ``parent``, as far as possible."""
    with suppress(OSError):
        for lock in parent.glob(f"{PREFIX}*.lock"):
            # A process may be killed before its folder is there, or after: then the lock alone is left.
            with suppress(WorkspaceError, OSError):
                if (descriptor := try_lock(lock)) is None:
                    continue
                try:
                    folder = lock.with_suffix("")
                    shutil.rmtree(folder, ignore_errors=True)
                    if not folder.exists():
                        lock.unlink()
                finally:
                    os.close(descriptor)


def keep_upload(target: Path, data: BinaryIO) -> None:
    """Write an uploaded file; WorkspaceError where it cannot be kept."""
    try:
        with open(target, "wb") as file:
            shutil.copyfileobj(data, file, 1 << 20)
    except OSError as error:
        raise WorkspaceError(
            f"The uploaded file could not be kept: {error.strerror or error}.", hint="Is the disk full?"
        ) from error
