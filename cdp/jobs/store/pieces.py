"""Files on their way through a store: as pieces, each named by the SHA-256 of its bytes.

What is there already is not sent again, of a file that grows only its last piece is, and a piece that was damaged on
its way is known by its name.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cdp.base.errors import ClusterError, WorkspaceError
from cdp.jobs.store.bucket import Bucket, shown

SHARED = "objects"
"""Where the pieces of inputs lie, for all jobs."""

PIECE, GROWING_PIECE = 8 << 20, 1 << 20
"""Bytes of a piece; smaller where a file grows, for its last one is sent again each time."""

AT_ONCE = 8

Stamp = tuple[int, int]
"""Size and time of change: a file with the same ones is the same."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file's content: its size and its pieces; ``own`` ones lie with the job, others are for all jobs."""

    size: int
    pieces: tuple[str, ...]
    own: bool = False

    def to_list(self) -> list[Any]:
        return [self.size, self.own, *self.pieces]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> Self:
        return cls(int(values[0]), tuple(str(piece) for piece in values[2:]), bool(values[1]))


class GoneError(ClusterError):
    """A piece is not there (any more): whoever sends it has newer ones."""


class Pieces:
    """The pieces of one job in a store, beside those that all jobs share. Safe to use from several threads.

    ``sent`` and ``sent_bytes`` count what had to be sent, ``known`` what was there.
    """

    def __init__(self, bucket: Bucket, job: str) -> None:
        self.bucket, self.folder = bucket, f"{job}/pieces"
        self.sent = self.sent_bytes = 0
        self._there: set[str] = set()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="store")

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def send(self, path: Path, *, own: bool, growing: bool = False, change: tuple[bytes, bytes] | None = None) -> Entry:
        """Send what of a file is not there. ``change`` replaces bytes in it. OSError where it cannot be read."""
        size, names, waiting = 0, list[str](), list[Future[None]]()
        for piece in _cut(path, GROWING_PIECE if growing else PIECE, change):
            names.append(hashlib.sha256(piece).hexdigest())
            size += len(piece)
            waiting.append(self._pool.submit(self._put, names[-1], piece, own))
            if len(waiting) > AT_ONCE:  # no more of the file in memory than that
                waiting.pop(0).result()
        for one in waiting:
            one.result()
        return Entry(size, tuple(names), own)

    def has_all(self, entry: Entry) -> bool:
        """Whether all of a file is there that was sent before."""
        return all(self._pool.map(lambda name: self._has(self._path(name, entry.own)), entry.pieces))

    def fetch(self, entry: Entry, target: Path, before: Entry | None = None) -> None:
        """Write the file, whole or not at all; of one that has grown since ``before`` the end alone. ``GoneError``
        where a piece is not there."""
        same = len(before.pieces) - 1 if before is not None else -1
        if before is None or same < 0 or before.pieces[:same] != entry.pieces[:same] or entry.size < before.size:
            self.fetch_all({target: entry})
            return
        for number in range(same, len(entry.pieces)):
            self._get(target, number, entry)

    def fetch_all(self, entries: Mapping[Path, Entry], wanted: Callable[[], bool] = lambda: True) -> None:
        """Write many files, each whole or not at all, until they are not ``wanted`` any more."""
        temporary = {path: path.with_name(f".{path.name}.{secrets.token_hex(6)}") for path in entries}
        try:
            for path, entry in entries.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                with open(temporary[path], "xb") as file:
                    file.truncate(entry.size)
            work = [
                (temporary[path], number, entry)
                for path, entry in entries.items()
                for number in range(len(entry.pieces))
            ]
            for start in range(0, len(work), 4 * AT_ONCE):
                if not wanted():
                    return
                list(self._pool.map(lambda one: self._get(*one), work[start : start + 4 * AT_ONCE]))
            for path, written in temporary.items():
                os.replace(written, path)
        except OSError as error:
            raise WorkspaceError.refused(Path(error.filename or next(iter(entries))), "written", error) from error
        finally:
            for path in temporary.values():
                with suppress(OSError):
                    path.unlink()

    def delete(self, names: set[str]) -> None:
        """Delete pieces of this job."""
        list(self._pool.map(lambda name: self.bucket.delete(self._path(name, True)), names))
        with self._lock:
            self._there -= {self._path(name, True) for name in names}

    def _path(self, name: str, own: bool) -> str:
        return f"{self.folder}/{name}" if own else f"{SHARED}/{name[:2]}/{name}"

    def _has(self, path: str) -> bool:
        if path not in self._there and not self.bucket.has(path):
            return False
        with self._lock:
            self._there.add(path)
        return True

    def _put(self, name: str, data: bytes, own: bool) -> None:
        path = self._path(name, own)
        if self._has(path):
            return
        self.bucket.put(path, data)
        with self._lock:
            self._there.add(path)
            self.sent += 1
            self.sent_bytes += len(data)

    def _get(self, path: Path, number: int, entry: Entry) -> None:
        name = entry.pieces[number]
        data = self.bucket.get(self._path(name, entry.own))
        if data is None:
            raise GoneError(
                f"The store {shown(self.bucket.address)} has lost a part of the job.", hint="Resume the job."
            )
        if hashlib.sha256(data).hexdigest() != name:
            raise ClusterError(f"What the store {shown(self.bucket.address)} gave back was damaged.", hint="Try again.")
        # All pieces but the last are of one size.
        start = entry.size - len(data) if number == len(entry.pieces) - 1 else number * len(data)
        with open(path, "r+b") as file:
            file.seek(start)
            file.write(data)


def _cut(path: Path, limit: int, change: tuple[bytes, bytes] | None) -> Iterator[bytes]:
    with open(path, "rb") as file:
        if change is not None:
            data = file.read().replace(*change)
            yield from (data[start : start + limit] for start in range(0, len(data), limit))
            return
        # Of a file that grows, what it has now.
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (piece := file.read(min(limit, left))):
            left -= len(piece)
            yield piece


def stamp_of(path: Path) -> Stamp:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns
