"""Workers behind a launcher: the launcher is neither in the way of a stop nor of a failure's cause."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json
from tests.jobs.support import start, until, until_state

pytestmark = pytest.mark.slow
PATIENCE_S = 180.0


def test_accelerate_runs_stops_and_reports(workspace: Workspace) -> None:
    waiting = start(workspace, "ranks", launcher="accelerate", wait=True)
    until(lambda: (workspace.job(waiting) / "rank-0.json").exists(), "the worker to start", PATIENCE_S)
    jobs.stop(workspace, waiting)
    stopped = until_state(workspace, waiting, "stopped", "failed", "finished", patience_s=PATIENCE_S)
    assert stopped.state == "stopped", stopped.failure
    assert "saved" in stopped.message

    failing = start(workspace, "fail", launcher="accelerate", how="data")
    failed = until_state(workspace, failing, "failed", "finished", patience_s=PATIENCE_S)
    assert failed.failure is not None
    assert failed.failure["kind"] == "data"

    killed = until_state(
        workspace, start(workspace, "fail", launcher="accelerate", how="kill"), "failed", patience_s=PATIENCE_S
    )
    assert killed.failure is not None
    assert killed.failure["kind"] == "killed"


def test_two_processes_on_cpu(workspace: Workspace) -> None:
    device = jobs.DeviceRequest.cpu(processes=2)
    job_id = start(workspace, "ranks", launcher="accelerate", device=device)
    assert until_state(workspace, job_id, "finished", "failed", patience_s=PATIENCE_S).state == "finished"
    ranks = [read_json(workspace.job(job_id) / f"rank-{rank}.json") for rank in (0, 1)]
    assert [(r["main"], r["world"]) for r in ranks] == [(True, "2"), (False, "2")]

    failing = start(workspace, "ranks", launcher="accelerate", device=device, fail=True, wait=True)
    failed = until_state(workspace, failing, "failed", "finished", "stopped", patience_s=PATIENCE_S)
    assert failed.failure is not None
    assert failed.failure["message"] == "rank 1 met a bad line"
