"""Which version of the workspace's layout lies on disk: ``workspace.json``, and what to do about older and newer ones.

An older workspace is brought forward step by step when it is opened. A newer one is refused: an older version of the
app could misread what it finds and write what the newer one cannot use. A workspace without the file is of format 1,
the only one there was before the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from cdp import __version__
from cdp.base.errors import WorkspaceError
from cdp.base.locks import locked
from cdp.base.workspace import Workspace, read_json, write_json

FILE = "workspace.json"


STEPS: tuple[Callable[[Workspace], None], ...] = ()
"""What brings a workspace from format n to n + 1, from 1 on. A step may be cut off and taken again, and loses nothing.
A step that has been released is never changed: add another."""


def current() -> int:
    """The format that this version of the app reads and writes."""
    return len(STEPS) + 1


def format_of(workspace: Workspace) -> int:
    """The format of a workspace; WorkspaceError where ``workspace.json`` does not say it."""
    path = workspace.root / FILE
    if not path.exists():
        return 1
    value = read_json(path)
    number = value.get("format") if isinstance(value, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise WorkspaceError(
            f"{path} does not say which format the workspace has.",
            hint='Where this version wrote the workspace, put {"format": 1} into that file.',
        )
    return number


def check(workspace: Workspace) -> int:
    """The format of a workspace that this version can use; WorkspaceError for one that a newer version has written."""
    number = format_of(workspace)
    if number > current():
        raise WorkspaceError(
            f"The workspace {workspace.root} has format {number}, which a newer version of CDP Studio wrote; this is "
            f"version {__version__}, which knows formats up to {current()}.",
            hint="Update CDP Studio, or name another workspace with CDP_WORKSPACE.",
        )
    return number


def open_workspace(workspace: Workspace) -> Workspace:
    """The workspace, ready to use: checked, brought forward where it is older, and marked with its format.

    An empty workspace is not made, and one that cannot be written is used as it is if its format is the current one.
    """
    number = check(workspace)
    if not workspace.root.is_dir() or not os.access(workspace.root, os.W_OK):
        if number < current():
            raise WorkspaceError(
                f"The workspace {workspace.root} has format {number} and cannot be written to bring it to format "
                f"{current()}."
            )
        return workspace
    if number < current():
        with locked(workspace.root / f"{FILE}.lock", "The workspace", wait_s=600.0):
            for step in range(check(workspace), current()):
                STEPS[step - 1](workspace)
                _mark(workspace, step + 1)
    elif not (workspace.root / FILE).exists():
        with suppress(WorkspaceError):  # a full disk: the next who opens it marks it
            _mark(workspace, number)
    return workspace


def _mark(workspace: Workspace, number: int) -> None:
    write_json(workspace.root / FILE, {"format": number, "written_by": __version__})
