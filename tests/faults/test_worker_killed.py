"""kill -9 on a worker in the midst of a line: the job has failed, says how, and goes on when resumed."""

from __future__ import annotations

import json

import pytest

from cdp.base.workspace import Workspace
from tests.faults.support import TRUE_WITHIN_S, kill, resumes_without_loss, worker_of
from tests.jobs.support import logged, start, status, until_state, until_step

pytestmark = pytest.mark.slow


def test_worker_killed_in_the_midst_of_a_line(workspace: Workspace) -> None:
    job_id = start(workspace, steps=20, hold_at=5)
    until_step(workspace, job_id, 5)
    kill([worker_of(workspace, job_id)])
    failed = until_state(workspace, job_id, "failed", patience_s=TRUE_WITHIN_S)
    assert failed.failure is not None
    assert failed.failure["kind"] == "killed"
    assert "killed from outside" in failed.failure["message"]
    assert "Resume" in failed.failure["hint"]
    assert status(workspace, job_id)["signal"] == 9

    torn = list(workspace.job(job_id).glob("*.jsonl"))
    assert {path.name for path in torn} >= {"metrics.jsonl", "began.jsonl"}
    steps = len(logged(workspace, job_id))
    for path in torn:
        with open(path, "ab") as file:
            file.write(json.dumps({"step": 99, "attempt": 1, "from": 99}).encode()[:-9])
    assert len(logged(workspace, job_id)) == steps, "the torn line is not shown"
    resumes_without_loss(workspace, job_id, 20)
