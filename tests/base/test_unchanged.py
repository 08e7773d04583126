"""A file that stays as it is, is read once; one that was replaced, removed or cannot be read is seen at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdp.base.unchanged import Unchanged


def test_a_file_is_read_again_when_it_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    reads: list[str] = []

    def read() -> str:
        reads.append(path.read_text())
        return reads[-1]

    kept: Unchanged[str] = Unchanged(most=2)
    path.write_text("a")
    assert [kept.of(path, read) for _ in range(3)] == ["a"] * 3
    assert reads == ["a"]
    new = tmp_path / "new"
    new.write_text("b")
    os.utime(new, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))  # as old, as long
    os.replace(new, path)
    assert kept.of(path, read) == "b"
    path.unlink()
    with pytest.raises(FileNotFoundError):
        kept.of(path, read)
    for name in "cde":
        (tmp_path / name).write_text(name)
        kept.of(tmp_path / name, lambda: "")
    path.write_text("b")
    kept.of(path, read)
    assert reads == ["a", "b", "b"], "no more than two are kept"
