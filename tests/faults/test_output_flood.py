"""A worker writes 20 MB while nobody reads: it does not block, and the log stays usable."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace
from tests.jobs.support import start, until_state

pytestmark = pytest.mark.slow

MEGABYTES = 20


def test_output_flood(workspace: Workspace) -> None:
    job_id = start(workspace, "spill", how="flood", megabytes=MEGABYTES)
    job = until_state(workspace, job_id, "finished", "failed", "stalled")
    assert job.state == "finished"
    assert (workspace.job(job_id) / "worker.log").stat().st_size > MEGABYTES * 1_000_000
    assert "flood is over" in jobs.follow_log(workspace, job_id, tail_bytes=200_000)[0]
    assert len(jobs.follow_log(workspace, job_id)[0]) <= 64 * 1024
    assert jobs.list_jobs(workspace)[0].size is None
    size = jobs.view(workspace, job_id).size
    assert size is not None
    assert size > MEGABYTES * 1_000_000, "a page can say what deleting it gives back"
    jobs.delete(workspace, job_id)
    assert not workspace.job(job_id).exists()
