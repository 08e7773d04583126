"""The disk fills up while a checkpoint is written: the job fails and says so, the last checkpoint stays whole."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cdp import catalog, jobs
from cdp.errors import WorkspaceError
from cdp.workspace import Workspace, read_json
from tests.faults.support import TRUE_WITHIN_S
from tests.jobs.support import saved_step, start, status, until_state

pytestmark = pytest.mark.slow


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace on a disk of its own of 4 MB."""
    mount = tmp_path / "small"
    mount.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(mount)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small disk needs more rights than this user has")
    workspace = Workspace(mount / "workspace")
    monkeypatch.setenv("CDP_WORKSPACE", str(workspace.root))
    yield workspace
    subprocess.run(["umount", "--lazy", str(mount)], check=True)


def fill_up(path: Path) -> None:
    """Write zeros until there is no space left."""
    with suppress(OSError), open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    assert shutil.disk_usage(path).free == 0


def test_disk_full_while_writing_a_checkpoint(small: Workspace) -> None:
    job_id = start(small, "spill", how="fill", steps=5, bytes=1_000_000)
    failed = until_state(small, job_id, "failed", "finished", "lost")
    assert failed.state == "failed"
    assert failed.failure is not None
    assert failed.failure["kind"] == "disk"
    assert "space" in failed.failure["message"] + failed.failure["hint"]
    assert status(small, job_id)["outcome"] == "failed", "its end is on the full disk all the same"

    checkpoints = small.job(job_id) / "checkpoints"
    saved = saved_step(small, job_id)
    assert saved >= 2
    for step in range(1, saved + 1):
        assert (checkpoints / f"{step}.bin").stat().st_size == 1_000_000, "what was saved is whole"
    assert not list(checkpoints.glob(".*")), "and no half-written file is left to fill the disk"

    (checkpoints / "1.bin").unlink()
    (checkpoints / "2.bin").unlink()
    jobs.resume(small, job_id)
    resumed = until_state(small, job_id, "finished", "failed")
    assert resumed.state == "finished", resumed.failure
    assert read_json(small.job(job_id) / "results" / "fill.json") == {"step": 5}


def test_nothing_starts_on_a_full_disk_and_nothing_is_left_behind(small: Workspace) -> None:
    job_id = start(small, steps=1)
    until_state(small, job_id, "finished")
    ballast = small.root / "ballast"
    fill_up(ballast)
    with pytest.raises(WorkspaceError, match=str(small.root)):
        start(small, steps=1)
    assert [job.id for job in jobs.list_jobs(small)] == [job_id]
    assert until_state(small, job_id, "finished", patience_s=TRUE_WITHIN_S).done == 1
    with pytest.raises(WorkspaceError, match=r"catalog\.duckdb|catalog\.lock"):
        catalog.evaluations(small)
    ballast.unlink()
    assert catalog.evaluations(small) == []
    until_state(small, start(small, steps=1), "finished")
