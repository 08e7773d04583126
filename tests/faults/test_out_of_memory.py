"""Out of memory, on the host and on the GPU: told apart, each with a hint; what was finished stays."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace
from tests.faults.support import TRUE_WITHIN_S
from tests.jobs.support import start, until_state

pytestmark = pytest.mark.slow


def test_memory_of_the_host_runs_out(workspace: Workspace) -> None:
    """For real: the worker may have 1 GiB and asks for more."""
    job_id = start(workspace, "spill", how="allocate")
    failed = until_state(workspace, job_id, "failed", "finished")
    assert failed.failure is not None
    assert failed.failure["kind"] == "host_out_of_memory"
    assert "batch_size" in failed.failure["hint"]
    assert "MemoryError" in "\n".join(failed.failure["log_tail"])


def test_memory_of_the_gpu_runs_out(workspace: Workspace) -> None:
    job_id = start(workspace, "fail", how="cuda")
    failed = until_state(workspace, job_id, "failed", "finished")
    assert failed.failure is not None
    assert failed.failure["kind"] == "cuda_out_of_memory"
    assert "mini_batch" in failed.failure["hint"]
    assert "20.00 GiB" in failed.failure["message"]


def test_the_next_job_is_not_affected(workspace: Workspace) -> None:
    first, second = start(workspace, "fail", how="kill"), start(workspace, steps=2)
    until_state(workspace, first, "failed")
    assert until_state(workspace, second, "finished", "failed").state == "finished"
    assert jobs.view(workspace, first).state == "failed"
    assert until_state(workspace, first, "failed", patience_s=TRUE_WITHIN_S).failure is not None
