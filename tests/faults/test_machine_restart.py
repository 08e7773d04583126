"""The machine went down: no process is left, no lock is held, and the recorded pids belong to strangers by now."""

from __future__ import annotations

import subprocess

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json, write_json
from tests.faults.conftest import processes_of
from tests.faults.support import TRUE_WITHIN_S, kill, resumes_without_loss
from tests.jobs.support import start, until_state, until_step

pytestmark = pytest.mark.slow


def test_machine_restart(workspace: Workspace) -> None:
    """One job ran, one waited, and of a third the specification was written and the supervisor never came to life."""
    running = start(workspace, steps=20, hold_at=5)
    queued = start(workspace, steps=2)
    until_step(workspace, running, 5)
    assert jobs.view(workspace, queued).position == 1
    kill([process.pid for process in processes_of(workspace)])
    submitted = workspace.job("test-20260101-000000-ffff-cut")
    write_json(submitted / "status.json", {"schema": 1, "phase": "queued", "attempt": 1})
    spec = read_json(workspace.job(queued) / "spec.json")
    write_json(submitted / "spec.json", {**spec, "id": submitted.name, "name": "cut"})

    stranger = subprocess.Popen(["sleep", "600"])
    try:
        for job_id in (running, queued):
            path = workspace.job(job_id) / "status.json"
            write_json(path, {**read_json(path), "supervisor_pid": stranger.pid, "worker_pid": stranger.pid})
        for job_id in (running, queued, submitted.name):
            lost = until_state(workspace, job_id, "lost", patience_s=TRUE_WITHIN_S)
            assert "Resume" in lost.message
            assert lost.position is None
            assert not jobs.stop(workspace, job_id), "there is nothing to stop"
        resumes_without_loss(workspace, running, 20)
        resumes_without_loss(workspace, submitted.name, 2)
        assert stranger.poll() is None, "a stranger that has the old pid is left alone"
    finally:
        stranger.kill()
        stranger.wait()
