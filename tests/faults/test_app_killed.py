"""kill -9 on the app, with everything in its session, while a job runs: the job goes on, and a new app sees it."""

from __future__ import annotations

import pytest

from cdp import catalog, jobs
from cdp.base.workspace import Workspace
from tests.faults.support import TRUE_WITHIN_S, app, first_line, kill_whole
from tests.jobs.support import logged, until, until_state, until_step

pytestmark = pytest.mark.slow


def test_app_killed_during_a_job(workspace: Workspace) -> None:
    first = app(workspace, "serve", "15")
    job_id = first_line(first)
    until_step(workspace, job_id, 3)
    kill_whole(first)

    assert until_state(workspace, job_id, "running", patience_s=TRUE_WITHIN_S).attempt == 1
    until_step(workspace, job_id, 10)
    (workspace.job(job_id) / "go").touch()
    assert [job.id for job in jobs.list_jobs(workspace)] == [job_id], "as the next app sees it"
    job = until_state(workspace, job_id, "finished", "failed", "lost", "stopped")
    assert (job.state, job.done, job.attempt) == ("finished", 15, 1)


@pytest.mark.soak
def test_app_killed_during_a_real_training(workspace: Workspace) -> None:
    """A training of static-minilm on the demo collection."""
    first = app(workspace, "train", "4")
    job_id = first_line(first)
    until(lambda: len(logged(workspace, job_id)) >= 2, "the training to log its steps", 180)
    kill_whole(first)
    before = len(logged(workspace, job_id))

    job = until_state(workspace, job_id, "running", "finished", patience_s=TRUE_WITHIN_S)
    assert job.phase == "training"
    job = until_state(workspace, job_id, "finished", "failed", "lost", "stopped", patience_s=300)
    assert (job.state, job.attempt, job.has_model) == ("finished", 1, True), job.failure
    assert job.done == job.total > 0
    assert len(logged(workspace, job_id)) > before, "it went on without its app"
    (row,) = catalog.trainings(workspace)
    assert row["id"] == job_id
    assert row["result"]["loss_last"] < row["result"]["loss_first"]
