"""Answers kept in memory for as long as the file that they were worked out from stays the same.

A page asks for the same figures at every click. Files here are replaced or appended to, so that time of change, size
and inode together tell whether one is still what it was.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 64
"""How many answers are kept; the least recently asked for go first."""

_answers: OrderedDict[Hashable, tuple[tuple[int, int, int], Any]] = OrderedDict()
_lock = threading.Lock()


def of_file(path: Path, what: Hashable, compute: Callable[[], T]) -> T:
    """``compute()``, or what it gave for the same ``what`` while ``path`` was as it is now.

    ``what`` tells apart the questions that are asked of one file. The answer is shared: it must not be changed. A file
    that is not there is computed anew each time.
    """
    try:
        stat = os.stat(path)
    except OSError:
        return compute()
    stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    key = (path, what)
    with _lock:
        cached_answer = _answers.get(key)
        if cached_answer is not None and cached_answer[0] == stamp:
            _answers.move_to_end(key)
            answer: T = cached_answer[1]
            return answer
    answer = compute()
    with _lock:
        _answers[key] = (stamp, answer)
        while len(_answers) > MOST:
            _answers.popitem(last=False)
    return answer
