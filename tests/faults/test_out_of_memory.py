"""The memory of the host runs out: the job says so with a hint, and the next one is not affected."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace
from tests.jobs.support import start, until_state

pytestmark = pytest.mark.slow


def test_memory_of_the_host_runs_out(workspace: Workspace) -> None:
    """For real: the worker may have a quarter of a gibibyte and asks for more."""
    job_id, following = start(workspace, "spill", how="allocate"), start(workspace, steps=2)
    failed = until_state(workspace, job_id, "failed", "finished")
    assert failed.failure is not None
    assert failed.failure["kind"] == "host_out_of_memory"
    assert "batch_size" in failed.failure["hint"]
    assert "MemoryError" in "\n".join(failed.failure["log_tail"])
    assert until_state(workspace, following, "finished", "failed").state == "finished"
    assert jobs.view(workspace, job_id).state == "failed"
