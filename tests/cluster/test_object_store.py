"""Jobs on a real Ray cluster whose nodes see nothing of the workspace: all goes through a server that speaks S3.

One test, for the cluster takes longer to start than most of it. That the nodes see nothing is not taken on trust: their
processes are refused every file below the workspace, and what they tried is written down (``unseen/sitecustomize.py``).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cdp import jobs, query_sets
from cdp.base.config import IndexConfig, TrainingConfig
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.cli import main
from cdp.jobs.lease import NODE
from cdp.services import search, training
from tests.cluster import moto
from tests.cluster.conftest import STARTS, SmallCluster, needs_minutes, started
from tests.cluster.sides import UNSEEN
from tests.jobs.support import start, until, until_state
from tests.support import REPOSITORY
from tests.support_models import tiny_retriever

pytestmark = pytest.mark.slow

PATIENCE_S = 400.0
KEY = "sk-a-key-that-nobody-may-read"

Capture = pytest.CaptureFixture[str]


def command(capsys: Capture, *words: str) -> dict[str, Any]:
    code = main([*words, "--json"])
    answer = capsys.readouterr()
    assert code == 0, answer.err
    read: dict[str, Any] = json.loads(answer.out)
    return read


def refused(capsys: Capture, *words: str) -> str:
    """The one line that a command refuses with."""
    capsys.readouterr()
    assert main(list(words)) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_nodes_that_see_nothing_of_the_workspace(
    workspace: Workspace, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_minutes()
    for name, value in moto.KEYS.items():
        monkeypatch.setenv(name, value)
    tried = tmp_path / "tried.log"
    env = {
        "PYTHONPATH": f"{REPOSITORY}:{UNSEEN}",
        "CDP_UNSEEN": str(workspace.root),
        "CDP_UNSEEN_LOG": str(tried),
        "CDP_SCRATCH": str(tmp_path / "node"),
    }
    with moto.s3() as server, moto.s3(asks=True) as strict:
        cluster = started(STARTS, 1, 1, env=env)
        try:
            assert main(["demo"]) == 0
            capsys.readouterr()
            store = f"s3://bucket/studio?endpoint_override={server}"
            what_cannot_work_is_said(capsys, cluster, server, strict)
            about = command(capsys, "cluster", "use", cluster.address, "--store", store)
            assert (about["store"], about["node"]["fault"], about["node"]["seen"]) == (store, "", True)
            evaluated_as_here(workspace, capsys)
            indexed(workspace)
            written_as_here(workspace, capsys)
            what_is_shared_is_refused(workspace, capsys)
            stopped_and_no_key_left(workspace, cluster)
            killed_and_resumed(workspace, cluster)
        finally:
            cluster.end()
    assert not tried.exists(), tried.read_text()


def what_cannot_work_is_said(capsys: Capture, cluster: SmallCluster, server: str, strict: str) -> None:
    def told(store: str) -> str:
        return refused(capsys, "cluster", "use", cluster.address, "--store", store)

    assert "s3://nobody/x could not be written: there is no such bucket. Make" in told(
        f"s3://nobody/x?endpoint_override={server}"
    )
    assert "it does not accept the credentials. Correct" in told(f"s3://bucket?endpoint_override={strict}")
    assert "nothing answers there. Is the endpoint right" in told("s3://bucket?endpoint_override=http://127.0.0.1:9")
    assert "holds no keys" in told("s3://me:secret@bucket")


def scores(workspace: Workspace, job_id: str) -> dict[str, Any]:
    result = read_json(workspace.job(job_id) / "results" / "evaluation.json")
    left_out = ("created", "seconds", "seconds_by_phase", "id", "job")
    return {name: value for name, value in result.items() if name not in left_out}


def evaluated_as_here(workspace: Workspace, capsys: Capture) -> None:
    """Scores of each query and ranking are those of this machine; what was sent before is not sent again."""
    for retriever in ("bm25", "static-minilm"):
        evaluation = ("evaluate", retriever, "--benchmark", "demo", "--wait")
        there = str(command(capsys, *evaluation)["id"])
        made = {path: path.read_bytes() for path in workspace.embeddings.rglob("*.npy")}
        for path in made:
            path.unlink()
        here = str(command(capsys, *evaluation, "--on", "here")["id"])
        assert [jobs.view(workspace, job_id).place.store != "" for job_id in (there, here)] == [True, False]
        assert scores(workspace, there) == scores(workspace, here)
        assert {path: path.read_bytes() for path in workspace.embeddings.rglob("*.npy")} == made
        run = [(workspace.job(job_id) / "results" / "run.parquet").read_bytes() for job_id in (there, here)]
        assert run[0] == run[1]
        again = str(command(capsys, *evaluation)["id"])
        record = read_json(workspace.job(again) / "store.json")
        assert record["sent"] == 1, "its own specification"


def indexed(workspace: Workspace) -> None:
    """What a node has embedded lies here, byte for byte what this machine makes."""
    config = IndexConfig.from_dict({"retriever": "static-minilm", "collection": corpus_of(workspace)})
    shards = []
    for where in (None, jobs.Place()):
        shutil.rmtree(workspace.embeddings)
        with jobs.choosing(where):
            job_id = search.start_index(workspace, config)
        job = until_state(workspace, job_id, "finished", "failed", patience_s=PATIENCE_S)
        assert (job.state, bool(job.place.store)) == ("finished", where is None), jobs.read_log(workspace, job_id)
        shards.append({path.name: path.read_bytes() for path in workspace.embeddings.rglob("*.npy")})
    assert shards[0] == shards[1] != {}


def corpus_of(workspace: Workspace) -> str:
    (folder,) = workspace.corpora.glob("[!.]*")
    return folder.name


def written_as_here(workspace: Workspace, capsys: Capture) -> None:
    writing = (
        "queries",
        "generate",
        "--corpus",
        corpus_of(workspace),
        "--generator",
        "template",
        "--per-doc",
        "2",
        "--wait",
    )
    sets = []
    for where in ((), ("--on", "here")):
        known = {entry.id for entry in query_sets.list_query_sets(workspace)}
        command(capsys, *writing, *where)
        (new,) = {entry.id for entry in query_sets.list_query_sets(workspace)} - known
        sets.append(query_sets.files(workspace, new))
    assert sets[0].queries.read_bytes() == sets[1].queries.read_bytes()
    assert sets[0].queries.stat().st_size > 1000


def what_is_shared_is_refused(workspace: Workspace, capsys: Capture) -> None:
    """At once, and nothing is begun."""
    known = set(workspace.jobs.glob("*"))
    assert "Leave workers out" in refused(
        capsys, "train", "demo diverse", "--retriever", "static-minilm", "--resources", "workers=2"
    )
    assert set(workspace.jobs.glob("*")) == known


def stopped_and_no_key_left(workspace: Workspace, cluster: SmallCluster) -> None:
    job_id = start(workspace, steps=1_000_000, secret="A_KEY", env_secrets={"A_KEY": KEY})
    until(lambda: "secret seen" in jobs.read_log(workspace, job_id), "the log of the worker", PATIENCE_S)
    until(lambda: len(jobs.read_metrics(workspace, job_id)) > 3, "its metrics")
    assert not list(workspace.job(job_id).glob("handover-*"))
    assert all(KEY not in json.dumps(submission) for submission in cluster.submissions(job_id))
    jobs.stop(workspace, job_id)
    job = until_state(workspace, job_id, "stopped", "failed")
    assert (job.state, "saved" in job.message) == ("stopped", True), job.failure


def killed_and_resumed(workspace: Workspace, cluster: SmallCluster) -> None:
    """A node dies after a checkpoint; another goes on from it, and so does this machine."""
    model = tiny_retriever(workspace.root / "models" / "tiny")
    config = TrainingConfig(
        query_set="demo paraphrase", retriever=str(model), batch_size=8, epochs=1000, save_steps=50, max_length=32
    )
    job_id = training.start(workspace, config).job_id
    folder = workspace.job(job_id)

    def saved() -> int:
        return max((int(path.parent.name[5:]) for path in folder.glob("checkpoints/step-*/state.pt")), default=0)

    def at_step() -> int:
        job = jobs.view(workspace, job_id, with_size=False)
        assert job.state not in ("failed", "finished"), jobs.read_log(workspace, job_id)
        return job.done if job.phase == "training" else 0

    until(saved, "a checkpoint to come", PATIENCE_S)
    until(lambda: at_step() > saved(), "some steps")
    node = cluster.submissions(job_id)[0]["driver_node_id"]
    cluster.kill(str(node))
    job = until_state(workspace, job_id, "failed", patience_s=PATIENCE_S)
    assert job.failure is not None
    assert "died, or is cut off from the store" in job.failure["message"] or "died." in job.failure["message"]
    begun = saved()
    jobs.resume(workspace, job_id)
    until(lambda: read_json(folder / NODE)["attempt"] == 2, "the second node", PATIENCE_S)
    until(lambda: saved() > begun, "another checkpoint", PATIENCE_S)
    steps = [line["step"] for line in read_jsonl(folder / "metrics.jsonl") if line["attempt"] == 2]
    assert min(steps) > begun >= 50, "it goes on from the checkpoint"
    assert cluster.submissions(job_id)[0]["driver_node_id"] != node
    jobs.stop(workspace, job_id)
    assert until_state(workspace, job_id, "stopped", "failed", patience_s=PATIENCE_S).state == "stopped"
    begun = saved()
    with jobs.choosing(jobs.Place()):
        assert jobs.resume(workspace, job_id) == 3
    until(lambda: saved() > begun, "a checkpoint of this machine", PATIENCE_S)
    jobs.stop(workspace, job_id)
    assert until_state(workspace, job_id, "stopped", "failed", patience_s=PATIENCE_S).state == "stopped"
