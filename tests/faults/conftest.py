"""After each test here, nothing of its jobs may be left running."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from cdp.base.workspace import Workspace
from tests.faults.full_disk import disk


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace on a disk of its own of 4 MB."""
    yield from _on_a_disk(tmp_path / "small", "4m", monkeypatch)


@pytest.fixture
def roomy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace on a disk of its own of 32 MB: enough for a job of each kind."""
    yield from _on_a_disk(tmp_path / "roomy", "32m", monkeypatch)


def _on_a_disk(mount: Path, size: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    with ExitStack() as stack:
        try:
            stack.enter_context(disk(mount, size))
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("mounting a small disk needs more rights than this user has")
        workspace = Workspace(mount / "workspace")
        monkeypatch.setenv("CDP_WORKSPACE", str(workspace.root))
        yield workspace


def processes_of(workspace: Workspace) -> list[psutil.Process]:
    """Every process that has this workspace on its command line."""
    root = str(workspace.root)
    return [p for p in psutil.process_iter(["cmdline"]) if any(root in part for part in p.info["cmdline"] or ())]


@pytest.fixture(autouse=True)
def nothing_left_running(workspace: Workspace) -> Iterator[None]:
    yield
    left = processes_of(workspace)
    _, left = psutil.wait_procs(left, timeout=20)
    names = [" ".join(process.info["cmdline"]) for process in left]
    for process in left:
        process.kill()
    assert not names, "processes outlived their jobs"
