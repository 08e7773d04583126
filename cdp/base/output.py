"""Standard output of a process whose output is a file on a disk that may fill up.

What is printed is only news. Without this, the line that tells of a full disk is itself an error on a full disk, and
takes the place of whatever was about to be recorded.
"""

from __future__ import annotations

import errno
import io
import sys
from contextlib import suppress
from typing import Any


class _Lossy(io.FileIO):
    """A descriptor that takes every line, also where there is no space for it."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            return len(data)


def survives_a_full_disk() -> None:
    """From now on, what this process prints and no disk has space for is lost, and nothing else is."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    sys.stdout = _text(1)
    sys.stderr = _text(2)


def _text(descriptor: int) -> io.TextIOWrapper:
    raw = io.BufferedWriter(_Lossy(descriptor, "wb", closefd=False))
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
