"""What a killed submitter or a killed delete leaves in ``jobs/``, and taking it away.

A job's folder is made under a hidden name and appears under its own only once it is whole; one that is deleted is
hidden first. So whatever is hidden and unlocked was left behind. Nothing that a worker wrote is ever taken away here.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from cdp.base.errors import WorkspaceError
from cdp.base.locks import try_lock
from cdp.base.workspace import Workspace

NEW, DELETED = ".new-", ".deleted-"
"""How the names of folders begin that are not jobs yet, or no longer."""

_OF_A_SUBMIT = frozenset(("alive.lock", "reserve", "status.json", "supervisor.log"))


def discard(folder: Path) -> None:
    """Hide a job's folder at once, then delete it. OSError where it cannot be hidden or not all of it be deleted."""
    doomed = folder if folder.name.startswith(DELETED) else folder.with_name(f"{DELETED}{folder.name.lstrip('.')}")
    if doomed.exists():
        shutil.rmtree(doomed)
    folder.rename(doomed)
    while doomed.exists():
        with suppress(FileNotFoundError):  # somebody tidies up at the same time
            shutil.rmtree(doomed)


def remove_leftovers(workspace: Workspace) -> None:
    """Delete hidden folders in ``jobs/`` that nobody is at work on. What cannot be deleted now stays for next time."""
    with suppress(OSError):
        for folder in list(workspace.jobs.glob(".*")):
            if folder.name.startswith((NEW, DELETED)):
                _remove_if_unlocked(folder)


def _remove_if_unlocked(folder: Path) -> None:
    """Delete a folder under its own lock: a submitter that comes to lock it meanwhile sees that it is gone."""
    lock: int | None = None
    with suppress(WorkspaceError):
        if (folder / "alive.lock").exists() and (lock := try_lock(folder / "alive.lock")) is None:
            return
        shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def remove_half_made(folder: Path) -> None:
    """Delete a visible folder that never became a job: nobody holds it, and it has only what a submit writes first.

    Versions that did not hide what they made left such folders when they were killed.
    """
    try:
        names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    except OSError:
        return
    if names and names <= _OF_A_SUBMIT:
        _remove_if_unlocked(folder)
