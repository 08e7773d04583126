"""The log of a job as people may read it: its end, what is new in it, and what matches; keys are cut out."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path

from cdp.base.errors import WorkspaceError
from cdp.base.redaction import redact
from cdp.base.workspace import Workspace
from cdp.jobs.records import load_spec

TAIL_LINES = 20
TAIL_BYTES = 64 * 1024


def log_tail(path: Path, lines: int = TAIL_LINES) -> list[str]:
    """The last lines of a log, progress bars reduced to their last state. Reads at most its last 64 KiB."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    shown = [line.rstrip().rsplit("\r", 1)[-1][:2000] for line in text.split("\n")]
    return [line for line in shown if line.strip()][-lines:]


def read_log(workspace: Workspace, job_id: str, *, tail_bytes: int = TAIL_BYTES) -> str:
    """The end of the worker's log, at most ``tail_bytes`` of it, starting at a line's start."""
    return follow_log(workspace, job_id, tail_bytes=tail_bytes)[0]


def follow_log(
    workspace: Workspace, job_id: str, *, offset: int | None = None, tail_bytes: int = TAIL_BYTES
) -> tuple[str, int]:
    """What was written since ``offset`` (None: only the end) and the offset to ask with next time.

    At most ``tail_bytes`` are returned at once; where more was written, the newest.
    """
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


def search_log(workspace: Workspace, job_id: str, text: str, *, limit: int = 200) -> tuple[list[tuple[int, str]], int]:
    """Lines of the log that contain ``text`` (letter case ignored): (line number, line), the last ``limit`` of them.

    The second value counts all that match. The log is read line by line, whatever its size.
    """
    load_spec(workspace, job_id)
    pattern = re.compile(re.escape(text.encode("utf-8")), re.IGNORECASE)
    last: deque[tuple[int, str]] = deque(maxlen=limit)
    count = 0
    try:
        with open(workspace.job(job_id) / "worker.log", "rb") as file:
            for number, line in enumerate(file, 1):
                if not pattern.search(line):
                    continue
                shown = redact(line.rstrip(b"\r\n").decode("utf-8", "replace"))
                if pattern.search(shown.encode("utf-8")):  # nobody finds a key by asking for its letters
                    count += 1
                    last.append((number, shown[:2000]))
    except FileNotFoundError:
        pass
    return list(last), count
