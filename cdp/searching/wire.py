"""Where the search process of a workspace is asked, and how: one line of JSON each way over a Unix socket.

The socket and the lock that keeps a second process away lie in a folder that is this account's alone: ``cdp-<uid>``
in the system's folder for temporary files, or ``$CDP_RUNTIME_DIR``. Not in the workspace, whose path may be longer
than a socket's may be, and whose disk may be read-only.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp import __version__
from cdp.base import errors
from cdp.base.errors import CdpError, WorkspaceError
from cdp.base.workspace import Workspace
from cdp.searching.indexes import NotPreparedError

RUNTIME = "CDP_RUNTIME_DIR"

LONGEST_ADDRESS = 100
"""Bytes of a socket's path; the systems take 104 to 108."""

MOST_BYTES = 1 << 20
"""Of a request. What the services let through is far smaller."""


@dataclass(frozen=True)
class Address:
    """The files of one workspace's search process; the same for everybody who runs this version with these plug-ins."""

    socket: Path
    lock: Path


def address_of(workspace: Workspace) -> Address:
    """Where the process of this workspace is, if there is one. Makes the folder. WorkspaceError if it is not safe."""
    folder = _runtime_folder()
    parts = (os.path.realpath(workspace.root), __version__, os.environ.get("CDP_PLUGINS", ""))
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    path = folder / f"{key}.sock"
    if len(os.fsencode(path)) > LONGEST_ADDRESS:
        raise WorkspaceError(f"{path} is too long for a socket.", hint=f"Set {RUNTIME} to a folder with a short path.")
    return Address(path, folder / f"{key}.lock")


def _runtime_folder() -> Path:
    """The private folder. WorkspaceError where somebody else may look into it or has made it."""
    named = os.environ.get(RUNTIME, "").strip()
    folder = Path(named) if named else Path(tempfile.gettempdir()) / f"cdp-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=bool(named), exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise WorkspaceError.refused(folder, "made", error) from error
    mine = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    if not mine or stat.S_IMODE(status.st_mode) & 0o077:
        raise WorkspaceError(
            f"{folder} is not a private folder of this account, so no search process is asked there.",
            hint=f"Remove it, or set {RUNTIME} to a folder that only this account may open (chmod 700).",
        )
    return folder


def send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """One message, on one line; nothing follows from this side."""
    connection.sendall(json.dumps(message).encode("ascii") + b"\n")


def receive(connection: socket.socket, most: int | None = None) -> Any:
    """The other side's message. ConnectionError if it ends before the line does, ValueError for what is no JSON, or
    is longer than ``most`` bytes."""
    parts, size = [], 0
    while True:
        part = connection.recv(1 << 16)
        if not part:
            raise ConnectionError("The connection ended before the message did.")
        parts.append(part)
        size += len(part)
        if part.endswith(b"\n"):
            return json.loads(b"".join(parts))
        if most is not None and size > most:
            raise ValueError("The message is too long.")


def described(error: CdpError) -> dict[str, Any]:
    """An error as it travels."""
    more = {name: getattr(error, name) for name in ("documents", "seconds") if hasattr(error, name)}
    return {"type": type(error).__name__, "message": error.message, "hint": error.hint, **more}


def error_of(value: Mapping[str, Any]) -> CdpError:
    """The error that ``described`` wrote down, of the same class where it is one of ``cdp.base.errors``."""
    if value.get("type") == NotPreparedError.__name__:
        return NotPreparedError(str(value["message"]), int(value["documents"]), float(value["seconds"]))
    named = getattr(errors, str(value.get("type")), None)
    kind = named if isinstance(named, type) and issubclass(named, CdpError) else WorkspaceError
    error = kind.__new__(kind)
    CdpError.__init__(error, str(value.get("message", "")), hint=str(value.get("hint", "")))
    return error
