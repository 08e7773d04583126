"""Workers behind a launcher: the launcher is neither in the way of a stop nor of a failure's cause."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json
from tests.jobs.support import start, until_state

pytestmark = pytest.mark.slow
PATIENCE_S = 180.0


def test_two_processes_on_cpu(workspace: Workspace) -> None:
    device = jobs.DeviceRequest(processes=2)
    failing = start(workspace, "ranks", launcher="accelerate", device=device, fail=True, wait=True)
    failed = until_state(workspace, failing, "failed", "finished", "stopped", patience_s=PATIENCE_S)
    assert failed.failure is not None
    assert failed.failure["message"] == "rank 1 met a bad line"
    ranks = [read_json(workspace.job(failing) / f"rank-{rank}.json") for rank in (0, 1)]
    assert [(r["main"], r["world"]) for r in ranks] == [(True, "2"), (False, "2")]
