"""Jobs on a real Ray cluster of a head and two nodes: equal to those of one machine, whatever dies meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from cdp import jobs
from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.cli import main
from cdp.services import training
from cdp.services.jobs import written_set
from tests.cluster.conftest import SmallCluster
from tests.jobs.support import start, until, until_state, until_step
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

# Each process imports torch, on a machine that has other work.
PATIENCE_S = 400.0
STEPS, SAVED_EVERY = 24, 5
# How far a weight of one process may be from that of two, which add up gradients in another order; the largest distance
# measured on weights of up to 1.05 was 4.5e-8.
CLOSE = 1e-6


def ended(workspace: Workspace, job_id: str) -> jobs.JobView:
    job = until_state(workspace, job_id, "finished", "failed", "stopped", "lost", patience_s=PATIENCE_S)
    assert job.state == "finished", (job.failure, jobs.read_log(workspace, job_id))
    return job


def test_a_job_whose_submitter_is_killed_equals_that_of_one_machine(
    workspace: Workspace, cluster: SmallCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:9")  # which Ray's own clients would ask in place of ours
    assert main(["demo"]) == 0
    assert main(["cluster", "use", cluster.address]) == 0
    assert "3 nodes, 2 CPUs, no GPU" in capsys.readouterr().out
    assert main(["evaluate", "static-minilm", "--benchmark", "demo", "--set", "gpus=1"]) == 2
    assert "asks for 1 GPU" in capsys.readouterr().err
    typed = ["queries", "generate", "--corpus", "demo", "--method", "diverse", "--generator", "template", "--wait"]
    before = {job.id for job in jobs.list_jobs(workspace)}
    submitter = subprocess.Popen([sys.executable, "-m", "cdp", *typed], cwd=REPOSITORY, start_new_session=True)
    there = until(lambda: [job.id for job in jobs.list_jobs(workspace) if job.id not in before], "the job", 60.0)[0]
    until((workspace.job(there) / "supervisor.log").exists, "the cluster to begin it", 60.0)
    os.killpg(submitter.pid, signal.SIGKILL)
    submitter.wait()
    assert ended(workspace, there).cluster == cluster.address
    assert "--- on " in jobs.read_log(workspace, there)
    assert main([*typed, "--on", "here"]) == 0
    here = jobs.list_jobs(workspace, ["synthesis"])[0].id
    assert here != there
    assert main(["cluster", "use", "here"]) == 0
    written = [workspace.query_set(written_set(jobs.view(workspace, job))) / "queries.jsonl" for job in (there, here)]
    assert written[0].read_bytes() == written[1].read_bytes()


def start_training(workspace: Workspace, address: str) -> str:
    """Two processes, under Ray Train on a cluster, else under torch's launcher."""
    config = TrainingConfig(
        query_set="demo paraphrase", retriever="static-minilm", batch_size=64, epochs=2, save_steps=SAVED_EVERY,
        weighting="cw",
    )  # fmt: skip
    named, _ = training.named(workspace, config)
    with jobs.choosing(address):
        return jobs.submit(
            workspace, kind="training", name="two processes", module=training.WORKER, config=named.to_dict(),
            launcher="accelerate", device=jobs.DeviceRequest.cpu(2),
        )  # fmt: skip


def result_of(workspace: Workspace, job_id: str) -> dict[str, Any]:
    return read_json(workspace.job(job_id) / "results" / "training.json")


def weights(folder: Path) -> list[Any]:
    (path,) = (folder / "model").rglob("*.safetensors")
    return list(load_file(path).values())


def test_two_nodes_train_what_two_processes_of_one_machine_train(workspace: Workspace, cluster: SmallCluster) -> None:
    assert main(["demo"]) == 0
    there = start_training(workspace, cluster.address)
    ended(workspace, there)
    here = start_training(workspace, "")
    ended(workspace, here)
    one, other = (result_of(workspace, job_id) for job_id in (there, here))
    assert (one["processes"], one["steps"]) == (2, STEPS)
    assert one["model_hash"] == other["model_hash"], "bit for bit"

    hit = start_training(workspace, cluster.address)
    until(lambda: jobs.view(workspace, hit).done > 2 * SAVED_EVERY and jobs.read_metrics(workspace, hit), "some steps",
          PATIENCE_S)  # fmt: skip
    cluster.kill(cluster.nodes.pop())
    ended(workspace, hit)
    log = jobs.read_log(workspace, hit)
    assert "A process of the job was lost" in log
    assert "The nodes that are left take 1 of 2 processes." in log
    assert [line["step"] for line in jobs.read_metrics(workspace, hit)] == list(range(1, STEPS + 1))
    pairs = zip(weights(workspace.job(there)), weights(workspace.job(hit)), strict=True)
    assert max(float(abs(a.astype("float64") - b.astype("float64")).max()) for a, b in pairs) < CLOSE
    cluster.add(1)


def test_a_workers_node_and_then_the_head_die(workspace: Workspace, cluster: SmallCluster) -> None:
    with jobs.choosing(cluster.address):
        keyless = start(workspace, secret="A_KEY", env_secrets={"A_KEY": "sk-a-key-that-stays-at-home"})
        job_id = start(workspace, steps=1_000_000, step_s=0.05)
    job = until_state(workspace, keyless, "failed", "finished", patience_s=PATIENCE_S)
    assert job.failure is not None
    assert "needs A_KEY, which is not set on the node" in job.failure["message"]
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    assert [path for path in files if b"sk-a-key-that-stays" in path.read_bytes()] == []

    def began() -> list[dict[str, Any]]:
        return list(read_jsonl(workspace.job(job_id) / "began.jsonl"))

    until_step(workspace, job_id, 3)
    cluster.kill(cluster.node_of(began()[0]["pid"]))
    until(lambda: len(began()) == 2, "the work to start again", PATIENCE_S)
    assert (began()[1]["attempt"], began()[1]["from"] >= 3) == (1, True)
    until_step(workspace, job_id, began()[1]["from"] + 3)
    steps = [line["step"] for line in jobs.read_metrics(workspace, job_id)]
    assert steps == list(range(1, len(steps) + 1)), "each step once, as it counts in the end"

    cluster.kill("head")
    until_state(workspace, job_id, "lost", patience_s=PATIENCE_S)
    cluster.head_returns()
    assert main(["jobs", "resume", job_id, "--on", cluster.address]) == 0
    until(lambda: len(began()) == 3, "the next attempt", PATIENCE_S)
    assert (began()[2]["attempt"], began()[2]["from"] > began()[1]["from"]) == (2, True)
    until_step(workspace, job_id, began()[2]["from"] + 3)
    assert main(["jobs", "stop", job_id]) == 0
    assert until_state(workspace, job_id, "stopped", "failed", "lost", patience_s=PATIENCE_S).state == "stopped"
