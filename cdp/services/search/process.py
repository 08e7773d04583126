"""Asking the search process of a workspace, which is started when it is needed and when it was killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

from cdp.base.errors import WorkspaceError
from cdp.base.locks import is_held, try_lock
from cdp.base.workspace import Workspace
from cdp.jobs.launchers import SPINS, python_path
from cdp.searching import wire
from cdp.searching.limits import idle_seconds, memory_limit, patience_seconds

WORKER = "cdp.workers.search"
ALREADY = 3
"""The worker's exit code where another process answers for this workspace."""

START_WITHIN_S = 60.0
"""It listens before it loads anything heavy; on a busy machine Python alone takes seconds."""

ANSWER_WITHIN_S = 300.0
"""A large model takes this long to load from a slow disk."""

TIMES = 2
"""A request whose process was killed is sent once more, to a new one. One that kills both is not tried for ever."""

_NO_MEMORY = "The model or the documents may need more memory than there is: choose a smaller retriever or corpus."


def is_running(workspace: Workspace) -> bool:
    """Whether a process answers for this workspace. What a killed one left is removed."""
    connection = _connect(wire.address_of(workspace))
    if connection is None:
        _clear(wire.address_of(workspace))
        return False
    connection.close()
    return True


def ask(workspace: Workspace, request: Mapping[str, Any]) -> Any:
    """The process's answer; CdpError as it raised it. Starts the process where none runs."""
    for _ in range(TIMES):
        connection = _connected(workspace)
        with connection:
            try:
                connection.settimeout(ANSWER_WITHIN_S)
                wire.send(connection, request)
                reply = wire.receive(connection)
            except TimeoutError as error:
                raise WorkspaceError(
                    f"The search process has not answered within {ANSWER_WITHIN_S:.0f} seconds.",
                    hint="Try again in a moment: it may still be loading.",
                ) from error
            except (OSError, ValueError):
                continue  # it was killed, or ended as it was idle just now
        if "error" in reply:
            raise wire.error_of(reply["error"])
        return reply["answer"]
    raise WorkspaceError(f"The search process ended {TIMES} times before it could answer.", hint=_NO_MEMORY)


def stop(workspace: Workspace) -> bool:
    """End the process, if there is one. Whether there was."""
    address = wire.address_of(workspace)
    connection = _connect(address)
    if connection is None:
        _clear(address)
        return False
    with connection, suppress(OSError, ValueError):
        connection.settimeout(5)
        wire.send(connection, {"op": "stop"})
        wire.receive(connection)
    deadline = time.monotonic() + 10
    while is_held(address.lock) and time.monotonic() < deadline:
        time.sleep(0.02)
    return True


def _connected(workspace: Workspace) -> socket.socket:
    address = wire.address_of(workspace)
    connection = _connect(address)
    if connection is not None:
        return connection
    if not workspace.root.is_dir():
        raise WorkspaceError("There is nothing to search yet.", hint="Add a corpus first.")
    (
        memory_limit(),
        idle_seconds(),
        patience_seconds(),
    )  # a wrong setting is said here, not in a process that nobody sees
    with tempfile.TemporaryFile() as log:  # its last words, without a file to clear away
        process = _start(workspace, address, log)
        deadline = time.monotonic() + START_WITHIN_S
        while time.monotonic() < deadline:
            connection = _connect(address)
            if connection is not None:
                return connection
            if process.poll() == ALREADY:
                process = _start(workspace, address, log)  # the other one ended meanwhile, or begins to listen
            elif process.poll() is not None:
                raise WorkspaceError(
                    f"The search process could not start: {_last_line(log) or _ending(process.returncode)}",
                    hint="Is the machine out of memory or of processes?",
                )
            time.sleep(0.02)
    raise WorkspaceError(
        f"The search process does not listen after {START_WITHIN_S:.0f} seconds.", hint="Try again in a moment."
    )


def _connect(address: wire.Address) -> socket.socket | None:
    """A connection, or None if nobody listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(5)
        connection.connect(str(address.socket))
    except OSError:
        connection.close()
        return None
    return connection


def _start(workspace: Workspace, address: wire.Address, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the process in a session of its own, without a terminal, a GPU or the network's hub."""
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(os.environ),
        "CDP_WORKSPACE": str(workspace.root),
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", SPINS),
    }
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", WORKER, str(workspace.root)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environment,
            cwd="/",
            start_new_session=True,
            close_fds=True,
        )
    except OSError as error:
        raise WorkspaceError(
            f"The search process could not be started: {error.strerror or error}.",
            hint="Is the machine out of memory or of processes?",
        ) from error
    # It may outlive this process; where it does not, someone has to collect it, and what it left if it was killed.
    threading.Thread(target=_collect, args=(process, address), name="collect-search", daemon=True).start()
    return process


def _collect(process: subprocess.Popen[bytes], address: wire.Address) -> None:
    process.wait()
    _clear(address)


def _clear(address: wire.Address) -> None:
    """Remove what a killed process left, unless another one has taken its place."""
    with suppress(OSError, WorkspaceError):
        if not address.lock.exists() and not address.socket.exists():
            return
        lock = try_lock(address.lock)
        if lock is not None:
            address.socket.unlink(missing_ok=True)
            address.lock.unlink(missing_ok=True)
            os.close(lock)


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def _ending(code: int | None) -> str:
    return f"it was ended by {signal.Signals(-code).name}." if code and code < 0 else f"it ended with exit code {code}."
