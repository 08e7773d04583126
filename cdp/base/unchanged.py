"""What was read from a small file, kept in memory for as long as the file stays as it is.

A page reads the same manifests many times over. Such files are replaced by a rename or appended to, so that time of
change, size and inode together tell whether one is still what it was.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class Unchanged(Generic[T]):
    """The answers for the files that were asked for last, ``most`` of them. They are shared: nobody changes them."""

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._answers: OrderedDict[Path, tuple[tuple[int, int, int], T]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, path: Path, read: Callable[[], T]) -> T:
        """``read()``, or what it gave while ``path`` was as it is now. What it raises is raised each time."""
        try:
            stat = os.stat(path)
        except OSError:
            return read()
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        with self._lock:
            kept = self._answers.get(path)
            if kept is not None and kept[0] == stamp:
                self._answers.move_to_end(path)
                return kept[1]
        answer = read()
        with self._lock:
            self._answers[path] = (stamp, answer)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return answer
