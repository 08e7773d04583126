"""The logs of a job: reading them without keys, the kind of a failure from the last lines."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

from cdp.base.errors import WorkspaceError
from cdp.base.failures import HINTS
from cdp.base.redaction import redact
from cdp.base.workspace import Workspace
from cdp.jobs.records import load_spec

TAIL_LINES = 20
TAIL_BYTES = 64 * 1024


def log_tail(path: Path) -> list[str]:
    """Return the last lines of a log (of its last 64 KiB), progress bars reduced to their last state."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            text = redact(file.read().decode("utf-8", "replace"))
    except OSError:
        return []
    shown = [line.rstrip().rsplit("\r", 1)[-1][:2000] for line in text.split("\n")]
    return [line for line in shown if line.strip()][-TAIL_LINES:]


def follow_log(
    workspace: Workspace, job_id: str, *, offset: int | None = None, tail_bytes: int = TAIL_BYTES
) -> tuple[str, int]:
    """Return the text since ``offset`` (None: only the end), its newest ``tail_bytes``, and the next offset."""
    load_spec(workspace, job_id)

    try:
        with open(workspace.job(job_id) / "worker.log", "rb") as file:
            size = file.seek(0, 2)
            start = max(0, size - tail_bytes, min(offset or 0, size))
            file.seek(start)
            data = file.read(size - start)
    except FileNotFoundError:
        return "", 0
    except OSError as error:
        raise WorkspaceError(f"The log of {job_id} cannot be read: {error.strerror or error}.") from error

    if start > (offset or 0):
        data = data[data.find(b"\n") + 1 :]

    return redact(data.decode("utf-8", "replace")), size


def redirect_output(path: Path) -> None:
    """Append the output of this process, and of libraries in it, to a file."""
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


# The launcher of several processes ends with 1 where one of its workers was killed.
_KILLED = re.compile(r"SIGKILL|Signal 9\b|exitcode:? -9\b")


def classify(code: int, reported: dict[str, Any] | None, tail: list[str]) -> dict[str, Any]:
    """Return kind, message, hint and log_tail of a failure.

    ``code`` is the worker's exit code (negative: a signal), ``reported`` the attempt's ``failure.json``.
    """
    kind, hint = "killed", "Resume it to go on from its last checkpoint."

    if reported is not None and reported.get("kind"):
        kind, message, hint = (str(reported.get(name, "")) for name in ("kind", "message", "hint"))
    elif -code in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        message = f"The worker was ended from outside ({signal.Signals(-code).name}) before it could save anything."
    elif -code == signal.SIGKILL or (code > 0 and _KILLED.search("\n".join(tail))):
        message = "The worker was killed from outside (kill -9), or by the system for lack of memory."
        hint = f"{hint} If memory was short (dmesg says so): {HINTS['host_out_of_memory']}"
    elif code < 0:
        kind, message = "bug", f"The worker crashed ({signal.strsignal(-code)}), which is a fault in native code."
    else:
        kind, hint = "bug", "The log holds the details."
        message = tail[-1].strip()[:300] if tail else f"The worker ended with exit code {code} and said nothing."

    return {"kind": kind, "message": message, "hint": hint, "log_tail": tail}
