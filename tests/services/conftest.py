"""The demo in a test's workspace, and jobs that are submitted and not started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.jobs.records import JobSpec


@pytest.fixture
def with_demo(workspace: Workspace, demo_root: Path) -> None:
    """The demo is in the test's own workspace."""
    shutil.copytree(demo_root, workspace.root)


class HeldJobs:
    """Jobs that are submitted and stay in the queue, as behind other jobs: no process starts."""

    def __init__(self) -> None:
        self.locks: list[int] = []
        self.secrets: list[Mapping[str, str]] = []

    def hold(
        self, _workspace: Workspace, _folder: Path, _spec: JobSpec, lock: int, secrets: Mapping[str, str], **_: object
    ) -> None:
        self.locks.append(os.dup(lock))
        self.secrets.append(secrets)

    def end(self) -> None:
        """Let go of the locks, as supervisors that are killed do."""
        while self.locks:
            os.close(self.locks.pop())


@pytest.fixture
def held_jobs(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldJobs]:
    """What a job was given can be looked at, and that it needs what it was given, at no price."""
    held = HeldJobs()
    monkeypatch.setattr("cdp.jobs._start_supervisor", held.hold)
    yield held
    held.end()
