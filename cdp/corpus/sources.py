"""The files of one import, wherever they lie: beside others in a folder, inside a zip, compressed with gzip."""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from cdp.errors import InputError
from cdp.scratch import scratch

DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, NotImplementedError, RuntimeError)
"""What the standard library raises for archives that are cut off, corrupt, encrypted or use unknown compression."""


class Budget:
    """Bytes that the compressed files (gz, zip, Parquet) of one import may unpack to, counted as they come out."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, n: int) -> None:
        self.spent += n
        if self.spent > self.limit:
            raise InputError(
                f"It unpacks to more than {self.limit / 1e6:,.0f} MB and was not read further.",
                hint="If it really is that big, raise max_uncompressed_mb, or unpack it and give the folder's path.",
            )


@dataclass(frozen=True)
class Source:
    """One file to read. ``name`` is its path relative to what the user gave, with ``/`` between parts."""

    name: str
    opener: Callable[[], BinaryIO]
    budget: Budget | None = None
    path: Path | None = None

    @classmethod
    def of_file(cls, path: Path, name: str, budget: Budget) -> Source:
        """A file on disk; only formats that compress spend from ``budget``."""
        compressed = path.suffix.lower() in (".gz", ".parquet", ".pq")
        return cls(name, lambda: open(path, "rb"), budget if compressed else None, path)

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
        if self.budget is not None:
            self.budget.spend(len(block))
        return block

    def damaged(self, error: Exception) -> InputError:
        return InputError(
            f"The compressed data cannot be unpacked: {error}.", hint="Make or copy the file anew.", file=self.name
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
