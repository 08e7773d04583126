"""A worker that hears neither SIGTERM nor the request file: after its grace it is killed, checkpoint and all kept."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace
from tests.faults.support import TRUE_WITHIN_S, worker_of
from tests.jobs.support import lives, saved_step, start, until_state, until_step

pytestmark = pytest.mark.slow


def test_worker_ignores_sigterm(workspace: Workspace) -> None:
    job_id = start(workspace, steps=100_000, ignore_stop=True, grace_s=4.0)
    until_step(workspace, job_id, 3)
    worker = worker_of(workspace, job_id)
    jobs.stop(workspace, job_id)
    until_state(workspace, job_id, "stopping", patience_s=TRUE_WITHIN_S)
    assert lives(worker), "it has its grace first"
    stopped = until_state(workspace, job_id, "stopped")
    assert "within 4 seconds" in stopped.message
    assert not lives(worker)
    assert saved_step(workspace, job_id) >= 3
    assert jobs.resume(workspace, job_id) == 2
    until_step(workspace, job_id, saved_step(workspace, job_id) + 2)
    jobs.stop(workspace, job_id)
    until_state(workspace, job_id, "stopped")
