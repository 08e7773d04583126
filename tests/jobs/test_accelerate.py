"""Workers behind a launcher: the launcher is neither in the way of a stop nor of a failure's cause."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json
from tests.jobs.support import start, until, until_state

pytestmark = pytest.mark.slow
PATIENCE_S = 180.0


@pytest.fixture
def one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> jobs.DeviceRequest:
    """A machine with one GPU, as far as its nvidia-smi says: a worker on the processor alone needs no launcher."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'GPU-aaaa, NVIDIA Fake, 81920, 0'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return jobs.DeviceRequest.gpus(1)


@pytest.mark.soak
def test_accelerate_runs_stops_and_reports(workspace: Workspace, one_gpu: jobs.DeviceRequest) -> None:
    on_gpu = {"launcher": "accelerate", "device": one_gpu}
    waiting = start(workspace, "ranks", wait=True, **on_gpu)
    until(lambda: (workspace.job(waiting) / "rank-0.json").exists(), "the worker to start", PATIENCE_S)
    jobs.stop(workspace, waiting)
    stopped = until_state(workspace, waiting, "stopped", "failed", "finished", patience_s=PATIENCE_S)
    assert stopped.state == "stopped", stopped.failure
    assert "saved" in stopped.message

    failing = start(workspace, "fail", how="data", **on_gpu)
    failed = until_state(workspace, failing, "failed", "finished", patience_s=PATIENCE_S)
    assert failed.failure is not None
    assert failed.failure["kind"] == "data"

    killing = start(workspace, "fail", how="kill", **on_gpu)
    killed = until_state(workspace, killing, "failed", patience_s=PATIENCE_S)
    assert killed.failure is not None
    assert killed.failure["kind"] == "killed"


def test_two_processes_on_cpu(workspace: Workspace) -> None:
    device = jobs.DeviceRequest.cpu(processes=2)
    failing = start(workspace, "ranks", launcher="accelerate", device=device, fail=True, wait=True)
    failed = until_state(workspace, failing, "failed", "finished", "stopped", patience_s=PATIENCE_S)
    assert failed.failure is not None
    assert failed.failure["message"] == "rank 1 met a bad line"
    ranks = [read_json(workspace.job(failing) / f"rank-{rank}.json") for rank in (0, 1)]
    assert [(r["main"], r["world"]) for r in ranks] == [(True, "2"), (False, "2")]
