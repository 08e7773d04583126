"""After each test here, nothing of its jobs may be left running."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from cdp.workspace import Workspace


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
