"""Rows of embeddings that may lie in several arrays or memory maps, seen as one."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from cdp.base.errors import InputError


class Rows:
    """The rows of one array, or of several that follow each other. Nothing is copied before it is asked for.

    Accepts (n, dim) arrays of float32 or float16; other floats become float32. InputError for other shapes.
    """

    def __init__(self, source: Any) -> None:
        parts = list(source) if isinstance(source, Sequence) else [source]
        self.parts = [_floats(part) for part in parts]
        widths = {part.shape[1] for part in self.parts}
        if len(widths) > 1:
            raise InputError(f"Embeddings of different dimensions cannot be searched together: {sorted(widths)}.")
        self.dim = widths.pop() if widths else 0
        self.starts = np.cumsum([0, *(len(part) for part in self.parts)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def slice(self, start: int, stop: int) -> np.ndarray:
        """Rows start … stop-1 as one writable array in memory, in their own precision."""
        stop = min(stop, len(self))
        pieces = []
        for part, first in zip(self.parts, self.starts, strict=False):
            low, high = max(start - first, 0), min(stop - first, len(part))
            if low < high:
                pieces.append(part[low:high])
        if len(pieces) == 1 and pieces[0].flags.writeable and pieces[0].flags.c_contiguous:
            return pieces[0]
        copied = np.concatenate(pieces) if pieces else np.empty((0, self.dim), np.float32)
        self._forget(pieces)
        return copied

    def take(self, indices: np.ndarray) -> np.ndarray:
        """The rows of ``indices``, in their order, as a float32 array in memory."""
        if len(self.parts) == 1:
            copied = self.parts[0][indices].astype(np.float32, copy=False)
            self._forget(self.parts)
            return copied
        copied = np.empty((len(indices), self.dim), np.float32)
        order = np.argsort(indices, kind="stable")
        ascending = indices[order]
        for part, first in zip(self.parts, self.starts, strict=False):
            low, high = np.searchsorted(ascending, [first, first + len(part)])
            if low < high:
                copied[order[low:high]] = part[ascending[low:high] - first]
                self._forget([part])  # a page read brings its neighbours: a few rows here and there map a whole file
        return copied

    @staticmethod
    def _forget(pieces: list[np.ndarray]) -> None:
        """Let go of the mapped pages of memory maps once they are copied: resident memory then stays bounded."""
        for piece in pieces:
            mapped = getattr(piece, "_mmap", None)
            if mapped is not None and hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)


def _floats(part: Any) -> np.ndarray:
    array = part if isinstance(part, np.ndarray) else np.asarray(part)
    if array.ndim != 2:
        raise InputError(f"Embeddings must have two dimensions, not the shape {array.shape}.")
    if array.dtype in (np.float32, np.float16):
        return array
    if not np.issubdtype(array.dtype, np.floating) and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"Embeddings must be numbers, not {array.dtype}.")
    return array.astype(np.float32)
