"""The files of one import, wherever they lie: beside others in a folder, inside a zip, compressed with gzip."""

from __future__ import annotations

import gzip
import lzma
import math
import re
import shutil
import struct
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from cdp.base.errors import InputError
from cdp.base.scratch import scratch
from cdp.base.workspace import folder_size

DAMAGED = (
    EOFError,
    ValueError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
)
"""What the standard library raises for archives that are cut off, corrupt, encrypted, packed in an unknown way, or that
ask for more memory than there is."""

BYTES_PER_S = 1_000_000
BASE_S = 5.0
"""CPU seconds that an import may take: five, and one more for each megabyte on disk. Reading takes a twentieth of it;
a small file that asks for more is made to hang whoever reads it."""


class Budget:
    """What one import may use: bytes that its compressed files (gz, zip, Parquet) unpack to, counted as they come out,
    and CPU seconds of this thread."""

    def __init__(self, limit: int, *, size: int | None = None) -> None:
        self.limit = limit
        self.spent = 0
        self.seconds = math.inf if size is None else BASE_S + size / BYTES_PER_S
        self._used = 0.0
        self._since = time.thread_time()

    @classmethod
    def of(cls, path: Path, limit: int) -> Budget:
        """The budget for reading ``path``, a file or a folder."""
        try:
            size = folder_size(path) if path.is_dir() else path.stat().st_size
        except OSError:
            size = 0
        return cls(limit, size=size)

    def spend(self, n: int) -> None:
        """Count bytes that came out. InputError where they, or the CPU seconds so far, are too many."""
        self.spent += n
        if self.spent > self.limit:
            raise InputError(
                f"It unpacks to more than {self.limit / 1e6:,.0f} MB and was not read further.",
                hint="If it really is that big, raise max_uncompressed_mb, or unpack it and give the folder's path.",
            )
        self.check()

    def check(self) -> None:
        """InputError where more CPU seconds went by than reading so much takes."""
        if self._used + time.thread_time() - self._since > self.seconds:
            raise InputError(
                f"Reading it took more than {self.seconds:,.0f} seconds of CPU and was given up: "
                "for its size it should take far less.",
                hint="Is it a file made to hang its reader? If not, split it, or unpack it and give the folder's path.",
            )

    def pause(self) -> None:
        """What is done from now on is not reading, until ``resume``."""
        self._used += time.thread_time() - self._since

    def resume(self) -> None:
        self._since = time.thread_time()


def existing(path: Path, what: str = "file or folder") -> Path:
    """``path`` itself; InputError where there is nothing, or where no file can have such a name."""
    try:
        path.stat()
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError):
            raise InputError(f"{shown_name(path)} may not be read.", hint="Check who may read it.") from error
        raise InputError(
            f"There is no {what} {shown_name(path)}.", hint="Check the path; it is read on the server."
        ) from error
    return path


def shown_name(name: str | Path) -> str:
    """A file's name as it can be printed and stored: bytes that are no UTF-8 become U+FFFD, control characters too."""
    return _UNSHOWN.sub("\ufffd", str(name)[:LONGEST_NAME])


_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
LONGEST_NAME = 1024


@dataclass(frozen=True)
class Source:
    """One file to read. ``name`` is its path relative to what the user gave, with ``/`` between parts."""

    name: str
    opener: Callable[[], BinaryIO]
    budget: Budget
    path: Path | None = None
    packed: bool = True
    """Whether the bytes that come out are counted: of a plain file they are no more than it has."""

    @classmethod
    def of_file(cls, path: Path, name: str, budget: Budget) -> Source:
        """A file on disk; of formats that compress the unpacked bytes are counted."""
        packed = path.suffix.lower() in (".gz", ".parquet", ".pq")
        return cls(shown_name(name), lambda: open(path, "rb"), budget, path, packed)

    @property
    def compressed(self) -> bool:
        return self.name.lower().endswith(".gz")

    @property
    def plain_name(self) -> str:
        """The name without ``.gz``."""
        return self.name[:-3] if self.compressed else self.name

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.plain_name).suffix.lower()

    @property
    def stem(self) -> str:
        return PurePosixPath(self.plain_name).stem

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The unpacked bytes. InputError for an archive that cannot be opened."""
        try:
            raw = self.opener()
        except DAMAGED as error:
            raise self.damaged(error) from error
        except OSError as error:
            raise InputError(f"It cannot be read: {error.strerror or error}.", file=self.name) from error
        with raw:
            if self.compressed:
                with gzip.open(raw) as unpacked:
                    yield unpacked  # type: ignore[misc]
            else:
                yield raw

    def read_block(self, stream: BinaryIO, size: int) -> bytes:
        """Up to ``size`` bytes, counted against the budget; InputError where the archive is damaged."""
        try:
            block = stream.read(size)
        except DAMAGED as error:
            raise self.damaged(error) from error
        except OSError as error:
            raise InputError(f"It cannot be read: {error.strerror or error}.", file=self.name) from error
        self.spend(len(block))
        return block

    def spend(self, n: int) -> None:
        """Count bytes that came out, and the time it took; see ``Budget``."""
        self.budget.spend(n if self.packed else 0)

    def damaged(self, error: Exception) -> InputError:
        problem = shown_name(str(error)) or type(error).__name__
        return InputError(
            f"The compressed data cannot be unpacked: {problem}.", hint="Make or copy the file anew.", file=self.name
        )

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """A path with the unpacked bytes, for readers that jump around in a file; a temporary copy where needed."""
        if self.path is not None and not self.compressed:
            yield self.path
            return
        folder = Path(tempfile.mkdtemp(prefix="cdp-unpacked-", dir=scratch()))
        try:
            copy = folder / "file"
            with self.open() as stream, open(copy, "wb") as target:
                while block := self.read_block(stream, 1 << 20):
                    target.write(block)
            yield copy
        finally:
            shutil.rmtree(folder, ignore_errors=True)
