"""What the search process holds in memory, with a limit: whatever was not asked for longest goes first."""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass
class _Item:
    value: Any
    state: Hashable
    size: int


class Held:
    """Models, embeddings, indexes and documents by key, each with the state that it was made from and its bytes.

    Each is made once, also where several threads ask for it. What is in use stays alive until its user is done, also
    where it was let go here meanwhile.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._items: OrderedDict[Hashable, _Item] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, state: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """What is held under ``key``, made anew where there is none or it was made from another ``state``."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                item = self._items.get(key)
                if item is not None and item.state == state:
                    self._items.move_to_end(key)
                    held: T = item.value
                    return held
                self._items.pop(key, None)
            value = make()
            with self._lock:
                self._items[key] = _Item(value, state, size(value))
            self._shrink()
            return value

    @property
    def nbytes(self) -> int:
        with self._lock:
            return sum(item.size for item in self._items.values())

    def keys(self) -> list[Hashable]:
        """What is held, the least recently used first."""
        with self._lock:
            return list(self._items)

    def drop(self, which: Callable[[Hashable], bool]) -> None:
        """Let go of everything whose key this says yes to."""
        with self._lock:
            for key in [key for key in self._items if which(key)]:
                del self._items[key]

    def _shrink(self) -> None:
        """Let go of the least recently used until the rest fits; the newest stays, however large it is."""
        gone = False
        with self._lock:
            while len(self._items) > 1 and sum(item.size for item in self._items.values()) > self.limit:
                self._items.popitem(last=False)
                gone = True
        if gone:
            with suppress(OSError, AttributeError):  # what was freed goes back to the system where glibc can do that
                ctypes.CDLL(None).malloc_trim(0)
