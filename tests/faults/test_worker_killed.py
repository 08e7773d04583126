"""kill -9 on a worker: the job has failed, says how, and goes on from its checkpoint when resumed."""

from __future__ import annotations

import pytest

from cdp.base.workspace import Workspace
from tests.faults.support import TRUE_WITHIN_S, kill, resumes_without_loss, worker_of
from tests.jobs.support import start, status, until_state, until_step

pytestmark = pytest.mark.slow


def test_worker_killed(workspace: Workspace) -> None:
    job_id = start(workspace, steps=60, hold_at=5)
    until_step(workspace, job_id, 5)
    kill([worker_of(workspace, job_id)])
    failed = until_state(workspace, job_id, "failed", patience_s=TRUE_WITHIN_S)
    assert failed.failure is not None
    assert failed.failure["kind"] == "killed"
    assert "killed from outside" in failed.failure["message"]
    assert "Resume" in failed.failure["hint"]
    assert status(workspace, job_id)["signal"] == 9
    resumes_without_loss(workspace, job_id, 60)
