"""The machine went down: no process is left, no lock is held, and the recorded pids belong to strangers by now."""

from __future__ import annotations

import subprocess

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json, write_json
from tests.faults.conftest import processes_of
from tests.faults.support import TRUE_WITHIN_S, kill, resumes_without_loss
from tests.jobs.support import start, state, until_state, until_step

pytestmark = pytest.mark.slow


def test_machine_restart(workspace: Workspace) -> None:
    done = start(workspace, steps=2)
    until_state(workspace, done, "finished")
    running = start(workspace, steps=80, hold_at=5)
    queued = start(workspace, steps=2)
    until_step(workspace, running, 5)
    assert jobs.view(workspace, queued).position == 1
    kill([process.pid for process in processes_of(workspace)])

    stranger = subprocess.Popen(["sleep", "600"])
    try:
        for job_id in (running, queued):
            path = workspace.job(job_id) / "status.json"
            write_json(path, {**read_json(path), "supervisor_pid": stranger.pid, "worker_pid": stranger.pid})
        for job_id in (running, queued):
            lost = until_state(workspace, job_id, "lost", patience_s=TRUE_WITHIN_S)
            assert "Resume" in lost.message
            assert lost.position is None
            assert not jobs.stop(workspace, job_id), "there is nothing to stop"
        assert state(workspace, done) == "finished"

        resumes_without_loss(workspace, running, 80)
        resumes_without_loss(workspace, queued, 2)
        assert stranger.poll() is None, "a stranger that has the old pid is left alone"
    finally:
        stranger.kill()
        stranger.wait()


def test_restart_in_the_midst_of_a_submit(workspace: Workspace) -> None:
    """The specification is written, the supervisor never came to life."""
    job_id = start(workspace, steps=2)
    until_state(workspace, job_id, "finished")
    folder = workspace.job("test-20260101-000000-ffff-cut")
    spec = {**read_json(workspace.job(job_id) / "spec.json"), "id": folder.name, "name": "cut"}
    write_json(folder / "status.json", {"schema": 1, "phase": "queued", "attempt": 1})
    write_json(folder / "spec.json", spec)
    until_state(workspace, folder.name, "lost", patience_s=TRUE_WITHIN_S)
    resumes_without_loss(workspace, folder.name, 2)
