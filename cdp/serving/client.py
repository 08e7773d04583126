"""Asking the search process of a workspace (``cdp.serving.dashboard``), starting it, its socket.

One per workspace, restarted by the next query if it was killed. It listens on a Unix socket in a folder that only this
account may open: ``cdp-<uid>`` among the temporary files, or ``$CDP_RUNTIME_DIR`` (paths of sockets are short).
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from cdp.base.errors import CdpError, WorkspaceError
from cdp.base.version import __version__
from cdp.base.workspace import Workspace
from cdp.jobs.launchers import computing, own_process
from cdp.serving.engine import NotPreparedError

INSTANCE = "cdp.serving.dashboard"


RUNTIME = "CDP_RUNTIME_DIR"
LONGEST_ADDRESS = 100  # bytes of a socket's path; systems take 104 to 108
ALREADY = 3  # exit code of the process if another one serves this workspace
START_WITHIN_S = 60.0  # on a busy machine Python alone takes seconds
ANSWER_WITHIN_S = 300.0  # a large model takes this long to load from a slow disk
ATTEMPTS = 2  # a request whose process was killed is retried once
_STARTING = threading.Lock()


def ask(workspace: Workspace, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the process's answer; CdpError as it raised it. Starts the process if none runs."""
    import httpx

    address = _address(workspace)
    for _ in range(ATTEMPTS):
        _ensure_listening(workspace, address)
        try:
            with httpx.Client(transport=httpx.HTTPTransport(uds=str(address)), timeout=ANSWER_WITHIN_S) as client:
                reply: dict[str, Any] = client.post("http://localhost/search", json=dict(request)).json()
        except httpx.TimeoutException as error:
            raise WorkspaceError(
                f"The search process has not answered within {ANSWER_WITHIN_S:.0f} seconds.",
                hint="Try again in a moment: it may still be loading.",
            ) from error
        except httpx.TransportError:
            continue  # it was killed, or ended just now because it was idle
        if "error" not in reply:
            return reply
        problem = reply["error"]
        kind = NotPreparedError if problem.get("unprepared") else CdpError
        raise kind(problem["message"], hint=problem.get("hint", ""))
    raise WorkspaceError(
        f"The search process ended {ATTEMPTS} times before it could answer.",
        hint="The model or the documents may need more memory than there is: choose a smaller retriever or corpus.",
    )


def _address(workspace: Workspace) -> Path:
    """Return the socket of this workspace's process. Makes its folder; WorkspaceError if that is not private."""
    named = os.environ.get(RUNTIME, "").strip()
    folder = Path(named) if named else Path(tempfile.gettempdir()) / f"cdp-{os.getuid()}"

    try:
        folder.mkdir(mode=0o700, parents=bool(named), exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise WorkspaceError.refused(folder, "made", error) from error

    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise WorkspaceError(
            f"{folder} is not a private folder of this account, so no search process is asked there.",
            hint=f"Remove it, or set {RUNTIME} to a folder that only this account may open (chmod 700).",
        )

    parts = (os.path.realpath(workspace.root), __version__)  # processes of another version give other answers
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    path = folder / f"{key}.sock"
    if len(os.fsencode(path)) > LONGEST_ADDRESS:
        raise WorkspaceError(f"{path} is too long for a socket.", hint=f"Set {RUNTIME} to a folder with a short path.")

    return path


def _ensure_listening(workspace: Workspace, address: Path) -> None:
    """Start the process where none listens. WorkspaceError if it does not begin to."""
    if _listens(address):
        return
    if not workspace.root.is_dir():
        raise WorkspaceError("There is nothing to search yet.", hint="Add a corpus first.")

    # One start for all sessions of this process.
    with _STARTING, tempfile.TemporaryFile() as log:
        process = None
        deadline = time.monotonic() + START_WITHIN_S
        while not _listens(address):
            if time.monotonic() > deadline:
                raise WorkspaceError(
                    f"The search process does not listen after {START_WITHIN_S:.0f} seconds.",
                    hint="Try again in a moment.",
                )

            if process is None or process.poll() == ALREADY:  # the other one ended meanwhile, or begins to listen
                process = _start(workspace, address, log)
            elif process.poll() is not None:
                log.seek(0)
                lines = log.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
                reason = lines[-1] if lines else f"exit code {process.returncode}."
                hint = "Is the machine out of memory or of processes?"
                raise WorkspaceError(f"The search process could not start: {reason}", hint=hint)

            time.sleep(0.02)


def _listens(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        return connection.connect_ex(str(address)) == 0


def _start(workspace: Workspace, address: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the process in a session of its own, without a terminal, a GPU or the network's hub."""
    environment = {
        **computing(own_process(workspace.root)),
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", INSTANCE, str(workspace.root), str(address)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise WorkspaceError(
            f"The search process could not be started: {error.strerror or error}.",
            hint="Is the machine out of memory or of processes?",
        ) from error

    # It may outlive this process; if it does not, it has to be reaped. The next one removes the socket of a killed one.
    threading.Thread(target=process.wait, name="reap-search", daemon=True).start()
    return process
