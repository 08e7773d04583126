"""Staging folders, whole or not at all: new data is written into a private folder and renamed when complete; leftovers.

::

    with staging(workspace.queries) as folder:
        …write into folder / "set"…
        (folder / "set").rename(workspace.queries / "mine-1234")

Names are random, so any number of processes may stage at once. Each folder has a lock beside it: folders of killed
processes are removed by the next ``staging``.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cdp.base.errors import WorkspaceError
from cdp.base.locks import try_lock

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


def clean(parent: Path) -> None:
    """Remove folders of killed processes from ``parent``, as far as possible."""
    with suppress(OSError):
        for lock in parent.glob(f"{PREFIX}*.lock"):
            # A process may be killed before its folder is there, or after: then the lock alone is left.
            with suppress(WorkspaceError, OSError):
                _remove_dead(lock.with_suffix(""), lock)


def _remove_dead(folder: Path, lock: Path) -> None:
    descriptor = try_lock(lock)
    if descriptor is not None:
        try:
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
