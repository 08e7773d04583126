"""The disk of a job is full at one write after the other: it says so, loses nothing, and goes on once there is space.

Each run has more free blocks than the one before, so that each time another write is the first to find none. A few of
them here; every one, for every kind of job, in ``make soak`` (``CDP_SOAK_KINDS``, ``CDP_SOAK_STEP`` for every n-th).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp import jobs
from cdp.base.errors import WorkspaceError
from cdp.base.workspace import Workspace
from tests.benchmarks import published
from tests.benchmarks.hub_server import Hub, Server
from tests.faults.chaos.kinds import small_ground
from tests.faults.full_disk import FullDisk, fill_up
from tests.jobs.support import start, status, until_state
from tests.metrics.models import tiny_cross_encoder
from tests.support import REPOSITORY
from tests.support_models import tiny_retriever, tiny_static

KINDS = ("synthesis", "metrics", "training", "evaluation", "study", "tuning", "download")

SUBMIT_BLOCKS = 18
"""With fewer, no job begins: 16 are set aside so that its end can be recorded."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    hub = Hub()
    with Server(hub):
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.commit("zeta-alpha-ai/NanoSciFact", published.nano())
        yield hub


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["synthesis", "download"])
def test_a_few_writes_that_find_no_space(kind: str, roomy: Workspace, tmp_path: Path, hub: Hub) -> None:
    ground = small_ground(roomy, tmp_path / "source", n_documents=100)
    full = FullDisk(ground, kind)
    last = max(full.blocks, SUBMIT_BLOCKS + 4)
    # With one block less than a submit needs, the first status once took the space that was set aside for the last.
    full.attack([SUBMIT_BLOCKS - 6, SUBMIT_BLOCKS - 1, SUBMIT_BLOCKS + 3, (SUBMIT_BLOCKS + last) // 2])
    assert full.wrong == []
    assert full.ends["not begun"] >= 1
    assert full.ends["failed"] >= 1, "some write found no space"


@pytest.mark.soak
def test_every_write_that_finds_no_space(roomy: Workspace, tmp_path: Path, hub: Hub) -> None:
    chosen = os.environ.get("CDP_SOAK_KINDS", "").split() or KINDS
    step = int(os.environ.get("CDP_SOAK_STEP", "1"))
    models = {
        "static": str(tiny_static(tmp_path / "static")),
        "bert": str(tiny_retriever(tmp_path / "bert")),
        "cross-encoder": str(tiny_cross_encoder(tmp_path / "cross-encoder")),
    }
    ground = small_ground(roomy, tmp_path / "source", n_documents=100, models=models)
    wrong: list[str] = []
    for kind in chosen:
        if kind not in KINDS:
            continue
        full = FullDisk(ground, kind)
        free = 0
        # A file is written beside the old one before it takes its name: a job needs more in between than it keeps.
        while full.ends["finished"] < 3 and free < 4 * full.blocks + 100:
            full.attack([free])
            free += step
        print(kind, full.blocks, "blocks,", json.dumps(full.ends), flush=True)
        wrong += full.wrong
        if not full.ends["finished"]:
            wrong.append(f"{kind}: it never had enough space")
    assert wrong == []


def test_what_a_full_disk_does_not_take_is_lost_from_the_log_and_nothing_else() -> None:
    code = (
        "import sys; from cdp.base.output import survives_a_full_disk as s; s(); print('a line', flush=True); "
        "print('another', file=sys.stderr); sys.exit(7)"
    )
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=full, cwd=REPOSITORY, check=False)
    assert done.returncode == 7, "the line that could not be written is no fault of its own"


@pytest.mark.slow
def test_a_job_resumed_on_a_full_disk_stays_failed(small: Workspace) -> None:
    job_id = start(small, "spill", how="fill", steps=5, bytes=1_000_000)
    until_state(small, job_id, "failed")
    before = status(small, job_id)
    ballast = small.root / "ballast"
    refused = 0
    for blocks in (0, 5, 15, 16, 17, 18):
        fill_up(ballast, but=blocks)
        try:
            jobs.resume(small, job_id)
        except WorkspaceError:
            refused += 1
            if blocks < 16:
                assert status(small, job_id) == before, "nothing was begun"
        job = until_state(small, job_id, "failed", "finished", "lost")
        ballast.unlink()
        assert job.state == "failed", f"{blocks} blocks were free"
        assert (job.failure or {})["kind"] == "disk"
        assert not (small.job(job_id) / "reserve").exists() or blocks >= 16
    assert refused >= 3


@pytest.mark.slow
def test_the_checkpoint_of_a_training_that_finds_no_space(small: Workspace) -> None:
    import torch

    from cdp.base.failures import failure_of
    from cdp.training import checkpoint

    free = shutil.disk_usage(small.root.parent).free
    state = {"weights": torch.zeros(10)}
    folder = small.root / "checkpoints"
    checkpoint.save(folder, 1, state)
    for much in (free // 2, free // 4 - 1100, free // 4 - 1000):
        with pytest.raises((OSError, RuntimeError)) as raised:
            checkpoint.save(folder, 2, {"weights": torch.zeros(much)})
        told = failure_of(raised.value)
        assert told["kind"] == "disk"
        assert "No space left" in told["message"]
        assert checkpoint.latest(folder) == folder / "step-000000001"
        assert [path.name for path in folder.iterdir()] == ["step-000000001"], "nothing half-written is left"
