"""kill -9 on a supervisor: the worker notices, saves and ends, and the job can be resumed without loss."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from tests.faults.conftest import processes_of
from tests.faults.support import TRUE_WITHIN_S, kill, resumes_without_loss, supervisor_of, worker_of
from tests.jobs.support import lives, start, state, until, until_state, until_step

pytestmark = pytest.mark.slow


def test_supervisor_killed_while_the_worker_runs(workspace: Workspace) -> None:
    job_id = start(workspace, steps=20, hold_at=3)
    until_step(workspace, job_id, 3)
    worker = worker_of(workspace, job_id)
    kill([supervisor_of(workspace, job_id)])
    assert state(workspace, job_id) in ("stopping", "lost"), "at once true: it no longer runs as it should"
    if lives(worker) and state(workspace, job_id) == "stopping":
        with pytest.raises(ConfigError, match="still active"):
            jobs.resume(workspace, job_id)
    lost = until_state(workspace, job_id, "lost", patience_s=TRUE_WITHIN_S)
    assert "Resume" in lost.message
    assert "supervisor was lost" in jobs.follow_log(workspace, job_id)[0]
    until(lambda: not lives(worker), "the worker to have ended")
    resumes_without_loss(workspace, job_id, 20)


def test_a_worker_that_finishes_without_its_supervisor_has_finished(workspace: Workspace) -> None:
    """The work was done before the worker noticed: nothing finished may be called lost."""
    job_id = start(workspace, steps=12, hold_at=3, ignore_stop=True)
    until_step(workspace, job_id, 3)
    kill([supervisor_of(workspace, job_id)])
    (workspace.job(job_id) / "go").touch()
    finished = until_state(workspace, job_id, "finished", "lost", "failed")
    assert (finished.state, finished.done) == ("finished", 12)


def test_a_worker_that_fails_without_its_supervisor_has_failed(workspace: Workspace) -> None:
    job_id = start(workspace, "fail", how="data", wait_for="go")
    until_state(workspace, job_id, "running")
    until(lambda: "waits" in jobs.follow_log(workspace, job_id)[0], "the worker to wait")
    kill([supervisor_of(workspace, job_id)])
    (workspace.job(job_id) / "go").touch()
    failed = until_state(workspace, job_id, "failed", "lost")
    assert failed.failure is not None
    assert failed.failure["kind"] == "data"
    assert "about to fail: data" in "\n".join(failed.failure["log_tail"])


def test_a_deaf_worker_without_supervisor_ends_by_force(workspace: Workspace) -> None:
    job_id = start(workspace, steps=4, hold_at=3, ignore_stop=True, grace_s=1.0)
    until_step(workspace, job_id, 3)
    worker = worker_of(workspace, job_id)
    kill([supervisor_of(workspace, job_id)])
    assert state(workspace, job_id) == "stopping"
    until(lambda: not lives(worker), "the worker to end by force")
    until_state(workspace, job_id, "lost", patience_s=TRUE_WITHIN_S)


def test_supervisor_killed_in_the_queue_blocks_nobody(workspace: Workspace) -> None:
    first = start(workspace, steps=2, hold_at=1)
    until_step(workspace, first, 1)
    second, third = start(workspace, steps=2), start(workspace, steps=2)
    waiting = [p.pid for p in processes_of(workspace) if str(workspace.job(second)) in p.info["cmdline"]]
    assert len(waiting) == 1
    kill(waiting)
    until_state(workspace, second, "lost", patience_s=TRUE_WITHIN_S)
    (workspace.job(first) / "go").touch()
    until_state(workspace, third, "finished")
    resumes_without_loss(workspace, second, 2)
