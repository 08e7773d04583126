"""Jobs on a real Ray cluster of a head and two nodes: equal to those of one machine, whatever dies meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from cdp import jobs, query_sets
from cdp.base.config import IndexConfig, TrainingConfig
from cdp.base.workspace import Workspace, read_json, read_jsonl, write_json
from cdp.cli import main
from cdp.jobs import place
from cdp.services import jobs as service
from cdp.services import studies
from cdp.services.jobs import written_set
from cdp.studies import records
from cdp.studies.config import StudyConfig
from cdp.training.reasoning import resolved_reasoning
from tests.cluster.conftest import SmallCluster
from tests.jobs.support import logged, start, until, until_state, until_step
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

# Each process imports torch, on a machine that has other work.
PATIENCE_S = 400.0
# So many that the training has not ended when its node is killed.
STEPS, SAVED_EVERY = 72, 5
# How far a weight of a training that lost a process may be from one that did not: one process adds up gradients in
# another order than two. The largest distance measured on weights of up to 1.05 was 4.7e-6.
CLOSE = 2e-5


def ended(workspace: Workspace, job_id: str) -> jobs.JobView:
    job = until_state(workspace, job_id, "finished", "failed", "stopped", "lost", patience_s=PATIENCE_S)
    assert job.state == "finished", (job.failure, jobs.follow_log(workspace, job_id)[0])
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
    assert "--- on " in jobs.follow_log(workspace, there)[0]
    assert main(["cluster", "use", "here"]) == 0
    assert main(typed) == 0
    here = jobs.list_jobs(workspace, ["synthesis"])[0].id
    assert here != there
    written = [workspace.query_set(written_set(jobs.view(workspace, job))) / "queries.jsonl" for job in (there, here)]
    assert written[0].read_bytes() == written[1].read_bytes()


def start_training(workspace: Workspace, address: str) -> str:
    """Two processes, under Ray Train on a cluster, else under torch's launcher."""
    config = TrainingConfig(
        query_set="demo paraphrase", retriever="static-minilm", batch_size=64, epochs=6, save_steps=SAVED_EVERY,
        weighting="cw",
    )  # fmt: skip
    query_set = query_sets.resolve_query_set(workspace, config.query_set)
    named = resolved_reasoning(workspace, config, query_set)
    place.choose(workspace, address)
    return jobs.submit(
        workspace, kind="training", name="two processes", module="cdp.workers.training", config=named.to_dict(),
        launcher="accelerate", device=jobs.DeviceRequest(processes=2),
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
    until(lambda: jobs.view(workspace, hit).done > 2 * SAVED_EVERY and logged(workspace, hit), "some steps",
          PATIENCE_S)  # fmt: skip
    cluster.kill(cluster.nodes.pop())
    ended(workspace, hit)
    cluster.add(1)  # before anything can fail: the next tests need it
    log = jobs.follow_log(workspace, hit)[0]
    assert "A process of the job was lost" in log
    assert "The remaining nodes have room for 1 of 2 processes." in log
    assert [line["step"] for line in logged(workspace, hit)] == list(range(1, STEPS + 1))
    left = zip(weights(workspace.job(there)), weights(workspace.job(hit)), strict=True)
    assert max(float(abs(a.astype("float64") - b.astype("float64")).max()) for a, b in left) < CLOSE


def in_turn(workspace: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the workspace, for the same work on one machine."""
    shutil.copytree(workspace.root, tmp_path / "one-machine")
    return Workspace(tmp_path / "one-machine")


def test_a_studys_trainings_are_those_of_one_machine_and_made_once(
    workspace: Workspace, cluster: SmallCluster, tmp_path: Path
) -> None:
    assert main(["demo"]) == 0
    here = in_turn(workspace, tmp_path)
    config = StudyConfig(
        benchmarks="demo", query_sets="demo paraphrase", retrievers="static-minilm", per_doc="1, 2", seeds="0",
        bm25=True, epochs=1, batch_size=32, gpus=0,
    )  # fmt: skip

    def begin(where: Workspace, address: str) -> str:
        place.choose(where, address)
        return studies.run(where, config, allow_leakage=True).job_id

    there = begin(workspace, cluster.address)
    steps = workspace.job(there) / "steps"
    until(lambda: list(steps.glob("*.json")), "the first step", PATIENCE_S)
    jobs.stop(workspace, there)
    until_state(workspace, there, "stopped", "failed", "finished", patience_s=PATIENCE_S)
    made = {path.name: path.stat().st_mtime_ns for path in steps.glob("*.json")}
    if jobs.view(workspace, there).state == "stopped":
        jobs.resume(workspace, there)
    ended(workspace, there)
    assert len(list(steps.glob("*.json"))) == 4
    assert {name: (steps / name).stat().st_mtime_ns for name in made} == made, "what was there was not made again"
    one = begin(here, "")
    ended(here, one)
    found = [
        {path.name: scores(read_json(path)) for path in (where.job(job_id) / records.FOLDER).glob("*.json")}
        for where, job_id in ((workspace, there), (here, one))
    ]
    assert len(found[0]) == 4
    assert found[0] == found[1]


def scores(record: dict[str, Any]) -> list[Any]:
    return [(place, e["measures"], e["ndcg@10"]) for place, e in record["evaluations"].items()]


def test_embeddings_are_those_of_one_machine_and_made_once(
    workspace: Workspace, cluster: SmallCluster, tmp_path: Path
) -> None:
    assert main(["demo"]) == 0
    here = in_turn(workspace, tmp_path)
    config = IndexConfig(retriever="minilm", corpus="demo")

    def index(where: Workspace, address: str) -> dict[str, bytes]:
        place.choose(where, address)
        ended(where, service.start(where, "index", config))
        return {str(p.relative_to(where.embeddings)): p.read_bytes() for p in where.embeddings.rglob("shard-*.npy")}

    one = index(here, "")
    (folder,) = {Path(name).parent for name in one}
    manifest = read_json(here.embeddings / folder / "manifest.json")
    for where in (here, workspace):  # shards small enough that there are several
        shutil.rmtree(where.embeddings, ignore_errors=True)
        write_json(where.embeddings / folder / "manifest.json", {**manifest, "shard_texts": 20})
    one = index(here, "")
    assert len(one) == 5
    kept = workspace.embeddings / folder / "shard-00001.npy"
    kept.write_bytes(one[f"{folder}/shard-00001.npy"])
    before = kept.stat().st_mtime_ns
    assert index(workspace, cluster.address) == one
    assert kept.stat().st_mtime_ns == before


def test_a_workers_node_and_then_the_head_die(workspace: Workspace, cluster: SmallCluster) -> None:
    place.choose(workspace, cluster.address)
    keyless = start(workspace, secret="A_KEY", env_secrets={"A_KEY": "sk-a-key-that-stays-at-home"})
    job_id = start(workspace, steps=1_000_000, step_s=0.05)
    job = until_state(workspace, keyless, "failed", "finished", patience_s=PATIENCE_S)
    assert job.failure is not None
    assert "needs A_KEY, which is not set on the node" in job.failure["message"]
    for path in workspace.root.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):  # the other job's ticket is renamed meanwhile
            assert b"sk-a-key-that-stays" not in path.read_bytes(), path

    def began() -> list[dict[str, Any]]:
        return list(read_jsonl(workspace.job(job_id) / "began.jsonl"))

    until_step(workspace, job_id, 3)
    cluster.kill(cluster.node_of(began()[0]["pid"]))
    until(lambda: len(began()) == 2, "the work to start again", PATIENCE_S)
    assert (began()[1]["attempt"], began()[1]["from"] >= 3) == (1, True)
    until_step(workspace, job_id, began()[1]["from"] + 3)
    steps = [line["step"] for line in logged(workspace, job_id)]
    assert steps == list(range(1, len(steps) + 1)), "each step once, as it counts in the end"

    cluster.kill("head")
    until_state(workspace, job_id, "lost", patience_s=PATIENCE_S)
    cluster.head_returns()
    # The command resumes only workers of the product, and this is a test's own.
    assert jobs.resume(workspace, job_id) == 2
    until(lambda: len(began()) == 3, "the next attempt", PATIENCE_S)
    assert (began()[2]["attempt"], began()[2]["from"] > began()[1]["from"]) == (2, True)
    until_step(workspace, job_id, began()[2]["from"] + 3)
    assert main(["jobs", "stop", job_id]) == 0
    assert until_state(workspace, job_id, "stopped", "failed", "lost", patience_s=PATIENCE_S).state == "stopped"
