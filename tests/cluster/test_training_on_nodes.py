"""A training on two nodes of a real cluster: what two processes of one machine train, and a node that dies midway."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from safetensors.numpy import load_file

from cdp import jobs
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_json
from cdp.cli import main
from cdp.jobs import Place
from cdp.services import training
from tests.cluster.conftest import SmallCluster, of_nodes
from tests.jobs.support import until, until_state
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

PATIENCE_S = 400.0
"""Each process imports torch, and on two processors there are six of them."""

KEY = "hf_a-key-that-nobody-may-read"

STEPS, SAVED_EVERY = 24, 5

CLOSE = 1e-6
"""How far a weight of one process may be from that of two, which add up gradients in another order. On weights of up to
1.05 the largest distance measured was 4.5e-8."""


@pytest.fixture
def narrow_cluster() -> Iterator[SmallCluster]:
    """A head without CPUs and two nodes with one each: two processes are on two nodes."""
    yield from of_nodes(1, 1)


def test_two_nodes_train_what_two_processes_of_one_machine_train(
    workspace: Workspace, narrow_cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, for the cluster takes long to start."""
    monkeypatch.setenv("HF_TOKEN", KEY)
    assert main(["demo"]) == 0
    with pytest.raises(ConfigError, match=r"3 workers are at work together, and the cluster at .* has room for 2"):
        begin(workspace, narrow_cluster, workers=3)
    assert not list(workspace.jobs.glob("*")), "nothing was begun"
    two = begin(workspace, narrow_cluster)
    until(lambda: at_step(workspace, two), "the first step", PATIENCE_S)
    pages = ("v0/actors?detail=true", "v0/workers?detail=true", "jobs/", "train/v2/runs/v1")
    shown = {page: httpx.get(f"{narrow_cluster.address}/api/{page}", timeout=30).text for page in pages}
    assert "TrainWorker" in shown["v0/actors?detail=true"]
    assert [page for page, text in shown.items() if KEY in text] == []
    done = until_state(workspace, two, "finished", "failed", patience_s=PATIENCE_S)
    assert done.state == "finished", jobs.read_log(workspace, two)
    result = result_of(workspace, two)
    assert (result["processes"], result["steps"]) == (2, STEPS)
    assert [line["step"] for line in jobs.read_metrics(workspace, two)] == list(range(1, STEPS + 1))
    left = [path for path in workspace.job(two).iterdir() if path.name.startswith((".group", "handover", "stop"))]
    assert left == [], "nothing of Ray Train's, and no key"

    here = on_one_machine(workspace, two)
    assert result["model_hash"] == result_of(workspace, here)["model_hash"], "bit for bit"

    interrupted = begin(workspace, narrow_cluster)
    until(lambda: at_step(workspace, interrupted) > 2 * SAVED_EVERY, "some steps", PATIENCE_S)
    stopped_and_resumed(workspace, interrupted)
    until(lambda: at_step(workspace, interrupted) > 3 * SAVED_EVERY, "some more", PATIENCE_S)
    narrow_cluster.kill(narrow_cluster.nodes[-1])
    done = until_state(workspace, interrupted, "finished", "failed", patience_s=PATIENCE_S)
    log = jobs.read_log(workspace, interrupted)
    assert done.state == "finished", log
    assert "The group of 2 lost a process" in log
    assert "The nodes that are left take 1 of 2 processes." in log
    assert result_of(workspace, interrupted)["processes"] == 1
    steps = [line["step"] for line in jobs.read_metrics(workspace, interrupted)]
    assert steps == list(range(1, STEPS + 1)), "each step once, as it counts in the end"
    assert furthest_apart(workspace, two, interrupted) < CLOSE


def begin(workspace: Workspace, cluster: SmallCluster, workers: int = 2) -> str:
    with jobs.choosing(Place(cluster.address, workers=workers)):
        config = TrainingConfig(
            query_set="demo paraphrase",
            retriever="static-minilm",
            batch_size=64,
            epochs=2,
            save_steps=SAVED_EVERY,
            weighting="cw",
        )
        return training.start(workspace, config).job_id


def stopped_and_resumed(workspace: Workspace, job_id: str) -> None:
    jobs.stop(workspace, job_id)
    job = until_state(workspace, job_id, "stopped", "failed", "finished", patience_s=PATIENCE_S)
    assert (job.state, "saved" in job.message) == ("stopped", True), jobs.read_log(workspace, job_id)
    assert jobs.resume(workspace, job_id) == 2


def on_one_machine(workspace: Workspace, like: str) -> str:
    """The same training in two processes, as torch's launcher starts them."""
    folder = workspace.job("here")
    folder.mkdir()
    (folder / "spec.json").write_bytes((workspace.job(like) / "spec.json").read_bytes())
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [sys.executable, *launcher, "-m", "cdp.workers.training", str(folder)],
        env={
            **os.environ,
            "ACCELERATE_USE_CPU": "true",
            "TOKENIZERS_PARALLELISM": "false",
            "PYTHONPATH": str(REPOSITORY),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return "here"


def at_step(workspace: Workspace, job_id: str) -> int:
    job = jobs.view(workspace, job_id, with_size=False)
    assert job.state not in ("failed", "finished"), jobs.read_log(workspace, job_id)
    return job.done if job.phase == "training" else 0


def result_of(workspace: Workspace, job_id: str) -> dict[str, Any]:
    return read_json(workspace.job(job_id) / "results" / "training.json")


def furthest_apart(workspace: Workspace, first: str, second: str) -> float:
    """The largest distance between a weight of one model and that of another."""
    return max(
        float(abs(one.astype("float64") - other.astype("float64")).max())
        for one, other in zip(weights(workspace.job(first)), weights(workspace.job(second)), strict=True)
    )


def weights(folder: Path) -> list[Any]:
    (path,) = (folder / "model").rglob("*.safetensors")
    return list(load_file(path).values())
