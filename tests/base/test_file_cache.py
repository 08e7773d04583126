"""Answers worked out from a file are kept until the file changes, each question on its own, the oldest let go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdp.base import workspace
from cdp.base.workspace import ANSWERS, RECORDS, sha256_file


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as written long ago."""
    monkeypatch.setattr(workspace, "FRESH_NS", 0)


def test_an_answer_is_kept_until_its_file_changes(tmp_path: Path, settled: None) -> None:
    path = tmp_path / "file"
    asked: list[str] = []

    def ask(what: str) -> str:
        def read() -> str:
            asked.append(what)
            return f"{what} {path.read_text()}"

        return ANSWERS.get(path, what, read)

    path.write_text("one")
    assert (ask("a"), ask("a"), ask("b")) == ("a one", "a one", "b one")
    assert asked == ["a", "b"]
    path.write_text("other")
    assert ask("a") == "a other"
    replacement = tmp_path / "new"
    replacement.write_text("third")
    replacement.replace(path)
    assert ask("a") == "a third"


def test_only_so_many_answers_are_kept(tmp_path: Path, settled: None) -> None:
    path = tmp_path / "file"
    path.write_text("one")
    asked: list[int] = []
    for i in (*range(ANSWERS._size + 1), 0):
        ANSWERS.get(path, i, lambda i=i: asked.append(i))  # type: ignore[misc]
    assert asked == [*range(ANSWERS._size + 1), 0]


def test_a_missing_file_is_asked_about_each_time(tmp_path: Path) -> None:
    answers = iter((1, 2))
    assert [ANSWERS.get(tmp_path / "none", "x", lambda: next(answers)) for _ in range(2)] == [1, 2]


def test_a_copy_that_keeps_the_time_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one")
    first = RECORDS.digest(path)
    before = path.stat()
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_ino, after.st_mtime_ns) == (before.st_size, before.st_ino, before.st_mtime_ns)
    assert RECORDS.digest(path) == sha256_file(path) != first
    assert RECORDS.digest(tmp_path / "none") == ""


def test_a_file_that_changes_twice_within_a_tick_of_the_clock_is_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for n in range(200):
        path.write_text(f"{n:04}")
        assert ANSWERS.get(path, "text", path.read_text) == f"{n:04}"
