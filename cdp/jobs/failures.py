"""Why a worker failed, in words a person can act on.

The worker's own word (``failure.json``) counts first: it knows its exception. Where it could not write one (killed,
crashed in native code, failed to import), the signal, the exit code and the end of the log have to do.
"""

from __future__ import annotations

import re
import signal
from typing import Any

from cdp.base.failures import HINTS

_KILLED = (
    "Resume it to go on from its last checkpoint; if it happens again, use a smaller batch_size or a machine with more "
    "memory."
)
_HINTS = {**HINTS, "killed": _KILLED, "configuration": "The log says what is missing."}

_PATTERNS = {
    "cuda_out_of_memory": r"CUDA out of memory|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED",
    "host_out_of_memory": r"MemoryError|can't allocate memory|Cannot allocate memory|std::bad_alloc",
    "killed": r"SIGKILL|Signal 9\b|exitcode:? -9\b",
    "disk": r"No space left on device|Disk quota exceeded|Errno 28\b",
    "network": r"Connection refused|Connection reset|Name or service not known|Temporary failure in name resolution"
    r"|Network is unreachable|Read timed out|Max retries exceeded",
    "configuration": r"No module named|usage: .*\[-h\]|unrecognized arguments",
}
"""By kind of failure, the pattern in the last lines of the log; tried in this order."""

_LAUNCHER_NOISE = re.compile(r"subprocess\.CalledProcessError|returned non-zero exit status|ChildFailedError")
_LOG_LINE = re.compile(r"^\s*(File \"|Traceback |\^|~|During handling|The above exception|\[?[EWI]\d{4} )")


def classify(
    *,
    exit_code: int | None,
    signal_number: int | None,
    reported: dict[str, Any] | None,
    tail: list[str],
    killed_for_memory: bool = False,
) -> dict[str, Any]:
    """kind, message, hint and log_tail of a failure.

    ``reported`` is the attempt's ``failure.json``, ``killed_for_memory`` whether the kernel counted a kill for lack of
    memory while the worker ran: it does not say of which process, so memory is only the likely cause.
    """
    if reported is not None and reported.get("kind"):
        kind, message, hint = str(reported["kind"]), str(reported.get("message", "")), str(reported.get("hint", ""))
    elif signal_number is not None:
        kind, message, hint = _by_signal(signal_number, killed_for_memory)
    else:
        kind, message, hint = _by_log(exit_code, tail, killed_for_memory)
    return {"kind": kind, "message": message, "hint": hint, "log_tail": tail}


def _by_signal(number: int, killed_for_memory: bool) -> tuple[str, str, str]:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if number == signal.SIGKILL:
        return _killed(killed_for_memory)
    if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        message = f"The worker was ended from outside ({name}) before it could save anything."
        return "killed", message, "Resume it to go on from its last checkpoint."
    message = f"The worker crashed ({name}), which is a fault in native code."
    return "bug", message, "The log may say more; resume it to go on from its last checkpoint."


def _killed(for_memory: bool) -> tuple[str, str, str]:
    if for_memory:
        message = "The worker was killed; the kernel killed processes for lack of memory meanwhile: the likely cause."
        return "host_out_of_memory", message, HINTS["host_out_of_memory"]
    return "killed", "The worker was killed from outside (kill -9 or out of memory).", _KILLED


def _by_log(exit_code: int | None, tail: list[str], killed_for_memory: bool) -> tuple[str, str, str]:
    text = "\n".join(tail)
    message = last_words(tail)
    for kind, pattern in _PATTERNS.items():
        if not re.search(pattern, text):
            continue
        if kind == "killed":
            return _killed(killed_for_memory)
        line = next((line.strip() for line in reversed(tail) if re.search(pattern, line)), message)
        return kind, line[:300], _HINTS[kind]
    if not message:
        message = f"The worker ended with exit code {exit_code} and said nothing."
    return "bug", message[:300], "The log holds the details."


def last_words(tail: list[str]) -> str:
    """The line of a log that most likely names the error: the last that is neither traceback nor launcher."""
    for line in reversed(tail):
        if line.startswith(" ") or _LOG_LINE.match(line) or _LAUNCHER_NOISE.search(line):
            continue
        return line.strip()
    return tail[-1].strip() if tail else ""
