"""A disk of its own, and filling it up."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

BLOCK = 4096
TOLD = ("space", "full")


@contextmanager
def disk(mount: Path, size: str) -> Iterator[Path]:
    """A disk of its own; an OSError or CalledProcessError where this user may not mount one."""
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(mount)], check=True, capture_output=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "--lazy", str(mount)], check=True)


def fill_up(path: Path, *, but: int = 0) -> None:
    """Write zeros until there is no space left but so many blocks of 4 KiB."""
    with suppress(OSError), open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(64 * BLOCK))
    with suppress(OSError), open(path, "ab", buffering=0) as file:
        while True:
            file.write(bytes(BLOCK))
    assert shutil.disk_usage(path).free == 0
    os.truncate(path, path.stat().st_size // BLOCK * BLOCK - BLOCK * but)
