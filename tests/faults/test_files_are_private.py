"""What is written is its owner's alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, private_files
from cdp.cli import main
from tests.jobs.support import start, until_state

# What the counting worker and its supervisor leave in the job's folder.
WRITTEN = {"worker.log", "heartbeat.json", "outcome.json", "status.json", "metrics.jsonl", "last.json", "count.json"}


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """The usual mask, under which everybody may read; put back after the test."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(root: Path) -> list[str]:
    """What below a folder somebody else may read, or could if the folders above let them."""
    return [str(path) for path in [root, *root.rglob("*")] if path.lstat().st_mode & 0o077 and not path.is_symlink()]


@pytest.mark.slow
def test_the_command_line_and_its_jobs_write_for_their_owner_alone(workspace: Workspace) -> None:
    assert main(["demo"]) == 0
    assert open_to_others(workspace.root) == []
    os.umask(0o022)  # as under a server that was started carelessly: the supervisor sees to it itself
    job = start(workspace, steps=1)
    until_state(workspace, job, "finished")
    by_worker = [path for path in workspace.job(job).rglob("*") if path.name in WRITTEN]
    assert {path.name for path in by_worker} == WRITTEN
    assert [path.name for path in by_worker if path.stat().st_mode & 0o077] == []


def test_the_mask_is_the_operators_to_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDP_UMASK", "027")
    private_files()
    (tmp_path / "shared").touch()
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o640
    for wrong in ("9", "rwx", "0x7", "-77"):
        monkeypatch.setenv("CDP_UMASK", wrong)
        with pytest.raises(ConfigError, match="octal"):
            private_files()
