"""Jobs on a real Ray cluster: submitted, followed, stopped, resumed, and told when the node or the head is killed.

One test, for the cluster takes longer to start than all of it.
"""

from __future__ import annotations

import json

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.cli import main
from cdp.jobs import alive
from cdp.jobs.place import Place
from tests.cluster.conftest import SmallCluster
from tests.jobs.support import saved_step, start, until, until_state, until_step

pytestmark = pytest.mark.slow

KEY = "sk-a-key-that-nobody-may-read"


def command(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """What a command answers in JSON, once it has gone well."""
    code = main([*words, "--json"])
    answer = capsys.readouterr()
    assert code == 0, answer.err
    read: dict[str, object] = json.loads(answer.out)
    return read


def test_from_submission_to_the_death_of_the_head(
    workspace: Workspace,
    ray_cluster: SmallCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:9")  # which Ray's own clients would ask in place of ours
    the_commands(workspace, ray_cluster, capsys)
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:9")
    job_id = followed(workspace, ray_cluster)
    stopped_and_resumed(workspace, job_id)
    told_of_a_dead_node(workspace, ray_cluster, job_id)
    told_of_a_dead_head(workspace, ray_cluster, job_id)


def the_commands(workspace: Workspace, cluster: SmallCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """The workspace's own cluster, what it has no room for, and an evaluation that finds what one here finds."""
    assert main(["demo"]) == 0
    capsys.readouterr()
    about = command(capsys, "cluster", "use", cluster.address)
    nodes, node = about["nodes"], about["node"]
    assert isinstance(nodes, list)
    assert isinstance(node, dict)
    assert [(n["head"], n["cpus"], n["gpus"]) for n in nodes] == [(True, 0, 0), (False, 1, 0), (False, 1, 0)]
    assert (node["seen"], node["writable"], node["locks"]) == (True, True, True)
    evaluation = ("evaluate", "bm25", "--benchmark", "demo", "--wait")
    assert main([*evaluation, "--resources", "gpus=1"]) == 2
    assert "No node of the cluster at" in capsys.readouterr().err
    assert not list(workspace.jobs.glob("*")), "nothing was begun"
    there, here = command(capsys, *evaluation), command(capsys, *evaluation, "--on", "here")
    places = [jobs.view(workspace, str(done["id"])).place for done in (there, here)]
    assert places == [Place(cluster.address), Place()]
    scores = [read_json(workspace.job(str(done["id"])) / "results" / "evaluation.json") for done in (there, here)]
    assert scores[0]["measures"] == scores[1]["measures"]
    assert command(capsys, "cluster", "use", "here") == {"address": ""}


def followed(workspace: Workspace, cluster: SmallCluster) -> str:
    """A job with a key, seen at work on a node; the key stands nowhere."""
    with jobs.choosing(Place(cluster.address)):
        job_id = start(workspace, steps=1_000_000, secret="A_KEY", env_secrets={"A_KEY": KEY})
    until_step(workspace, job_id, 3)
    job = until_state(workspace, job_id, "running")
    assert (job.place.address, bool(job.host), job.phase) == (cluster.address, True, "counting")
    assert job.done >= 1
    until(lambda: "secret seen" in jobs.read_log(workspace, job_id), "the log of the worker")
    assert jobs.read_metrics(workspace, job_id)[0]["step"] == 1
    (submission,) = cluster.submissions(job_id)
    assert KEY not in json.dumps(submission)
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    assert [path for path in files if path.exists() and KEY.encode() in path.read_bytes()] == []
    return job_id


def stopped_and_resumed(workspace: Workspace, job_id: str) -> None:
    jobs.stop(workspace, job_id)
    job = until_state(workspace, job_id, "stopped", "failed")
    assert (job.state, "saved" in job.message) == ("stopped", True), job.failure
    saved = saved_step(workspace, job_id)
    assert jobs.resume(workspace, job_id, env_secrets={"A_KEY": KEY}) == 2
    until_step(workspace, job_id, saved + 3)
    assert until_state(workspace, job_id, "running").place.address
    began = list(read_jsonl(workspace.job(job_id) / "began.jsonl"))
    assert [(b["attempt"], b["from"]) for b in began] == [(1, 0), (2, saved)]


def told_of_a_dead_node(workspace: Workspace, cluster: SmallCluster, job_id: str) -> None:
    node = cluster.submissions(job_id)[0]["driver_node_id"]
    cluster.kill(str(node))
    job = until_state(workspace, job_id, "failed", "stopped", "lost", patience_s=120.0)
    assert job.failure is not None
    assert (job.state, job.failure["kind"]) == ("failed", "cluster")
    assert job.failure["message"].startswith("The cluster's node ")
    assert "resume" in job.failure["hint"].lower()
    jobs.resume(workspace, job_id, env_secrets={"A_KEY": KEY})
    until(lambda: len(list(read_jsonl(workspace.job(job_id) / "began.jsonl"))) == 3, "the next attempt", 120.0)
    last = list(read_jsonl(workspace.job(job_id) / "began.jsonl"))[-1]
    assert last["from"] > 0, "it goes on from its checkpoint"
    until_step(workspace, job_id, last["from"] + 3)
    assert cluster.submissions(job_id)[0]["driver_node_id"] != node


def told_of_a_dead_head(workspace: Workspace, cluster: SmallCluster, job_id: str) -> None:
    """Nobody can ask Ray for anything now: the job's own files see that its worker ends, and it goes on here."""
    cluster.kill("head")
    job = until_state(workspace, job_id, "failed", "stopped", "lost", patience_s=120.0)
    assert job.failure is not None
    assert (job.state, job.failure["kind"]) == ("failed", "cluster")
    assert cluster.address in job.failure["message"]
    with jobs.choosing(Place()):
        jobs.resume(workspace, job_id, env_secrets={"A_KEY": KEY})
    until(lambda: len(list(read_jsonl(workspace.job(job_id) / "began.jsonl"))) == 4, "the next attempt", 120.0)
    last = list(read_jsonl(workspace.job(job_id) / "began.jsonl"))[-1]
    until_step(workspace, job_id, last["from"] + 3)
    assert until_state(workspace, job_id, "running").place == Place()
    jobs.stop(workspace, job_id)
    assert until_state(workspace, job_id, "stopped", "failed").state == "stopped"
    until(lambda: not alive.processes_of(workspace.job(job_id)), "no process of the job to be left")
