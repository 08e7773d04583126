"""Locks between processes: gone with their holder, bounded in waiting, and clear about what is busy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.base.errors import WorkspaceError
from cdp.base.locks import is_held, locked, try_lock
from tests.jobs.support import until
from tests.support import REPOSITORY

HOLD = """
import sys, time
from pathlib import Path
from cdp.base.locks import try_lock
try_lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def other_process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock on tmp_path/lock; the test kills it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.stdout.close()
    yield process
    process.kill()
    process.wait()


def test_a_lock_is_gone_with_its_holder(tmp_path: Path, other_process: subprocess.Popen[str]) -> None:
    path = tmp_path / "lock"
    assert is_held(path)
    assert try_lock(path) is None
    other_process.kill()
    other_process.wait()
    assert not is_held(path)
    descriptor = try_lock(path)
    assert descriptor is not None
    os.close(descriptor)


@pytest.mark.slow
def test_a_wait_in_vain_names_the_file(tmp_path: Path, other_process: subprocess.Popen[str]) -> None:
    path = tmp_path / "lock"
    with pytest.raises(WorkspaceError, match="It is busy") as caught, locked(path, "It", wait_s=0.1):
        pass
    assert str(path) in str(caught.value)


def test_asking_is_not_holding(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path), "no file, no lock"
    with locked(path, "It"):
        assert is_held(path)
    assert not is_held(path)
    shared = try_lock(path, shared=True)
    assert shared is not None
    assert not is_held(path), "readers do not make it held"
    assert try_lock(path) is None
    os.close(shared)


def test_children_do_not_inherit_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = try_lock(path)
    assert descriptor is not None
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], close_fds=False)
    try:
        os.close(descriptor)
        # The kernel lets the parent go on a moment before the child's inherited descriptors are closed.
        until(lambda: not is_held(path), "the lock to be free", patience_s=10)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((WorkspaceError, OSError), match="file"):
        try_lock(tmp_path / "file" / "lock")
