"""In-memory cache of values parsed or computed from files, valid while the file is unchanged."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


class FileCache:
    """LRU cache of values computed from files. Cached values are shared: treat them as read-only."""

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, tuple[tuple[int, int, int], Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: Path, question: Hashable, load: Callable[[], T]) -> T:
        """Return the cached answer to ``question`` while ``path`` is unchanged, else call ``load``.

        Errors are not cached, nor is anything of a file that does not exist.
        """
        try:
            stat = os.stat(path)
        except OSError:
            return load()
        # Files are replaced by rename or appended to, so time of change, size and inode identify a version.
        stamp, key = (stat.st_mtime_ns, stat.st_size, stat.st_ino), (path, question)
        with self._lock:
            kept = self._values.get(key)
            if kept is not None and kept[0] == stamp:
                self._values.move_to_end(key)
                value: T = kept[1]
                return value
        value = load()
        with self._lock:
            self._values[key] = (stamp, value)
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value


# Manifests and other small records.
RECORDS = FileCache()
# Values that pages read at every click; some are large.
ANSWERS = FileCache(64)
