"""One evaluation divided over a cluster whose nodes die under it: what it leaves is what one machine leaves."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.cli import main
from cdp.evaluation import bm25, search
from cdp.jobs import Place
from tests.cluster.conftest import SmallCluster
from tests.cluster.support import DOCUMENTS, SHARD, a_benchmark, shards, with_small_shards
from tests.jobs.support import start, until, until_state
from tests.support_models import tiny_bert

pytestmark = pytest.mark.slow


def a_member_elsewhere(workspace: Workspace, cluster: SmallCluster, job_id: str) -> str:
    """The node of a Ray worker of the job that is not also the node of the job's own worker."""

    def elsewhere() -> list[str]:
        nodes = re.findall(r"A Ray worker begins on .*, node (\w+)\.", jobs.read_log(workspace, job_id))
        own = {entry["driver_node_id"] for entry in cluster.submissions(job_id)} if nodes else set()
        return [node for node in nodes if node not in own]

    return str(until(elsewhere, "a Ray worker on another node than the job's", 120.0)[0])


def test_what_dies_changes_nothing(
    tmp_path: Path,
    workspace: Workspace,
    wide_cluster: SmallCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One test, for the cluster takes longer to start than all of it. A node dies while the documents are encoded, and
    another while they are searched, of three; new ones come, and both passes of BM25 lose one."""
    an_evaluation_loses_a_node(tmp_path, workspace, wide_cluster, capsys, monkeypatch)
    a_search_loses_a_node(workspace, wide_cluster)
    bm25_loses_two_nodes(workspace, wide_cluster)


def an_evaluation_loses_a_node(
    tmp_path: Path,
    workspace: Workspace,
    cluster: SmallCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    benchmark = a_benchmark(tmp_path / "wide")
    model = tiny_bert(tmp_path / "bert", hidden=64, layers=4)
    here = Workspace(tmp_path / "here")
    key = with_small_shards(model, benchmark, here, workspace)
    command = ["evaluate", str(model), "--benchmark", str(benchmark)]
    with monkeypatch.context() as patched:
        patched.setenv("CDP_WORKSPACE", str(here.root))
        assert main([*command, "--on", "here", "--wait"]) == 0
    on = ["--on", cluster.address, "--resources", "workers=2,cpus=1", "--json"]
    capsys.readouterr()
    assert main([*command, *on]) == 0
    job_id = str(json.loads(capsys.readouterr().out)["id"])
    folder = workspace.embeddings / key
    victim = a_member_elsewhere(workspace, cluster, job_id)
    until_it_has_made(workspace, job_id, lambda: len(list(folder.glob("shard-*.npy"))) >= 4)
    cluster.kill(victim)
    made = len(list(folder.glob("shard-*.npy")))
    assert made < DOCUMENTS // SHARD, "it was in the middle"
    job = until_state(workspace, job_id, "finished", "failed", patience_s=240.0)
    assert job.state == "finished", jobs.read_log(workspace, job_id)
    assert "A Ray worker was lost with part" in jobs.read_log(workspace, job_id)
    assert len(list(folder.glob("shard-*.npy"))) == DOCUMENTS // SHARD
    assert shards(workspace) == shards(here)
    (alone,) = here.jobs.glob("*/results")
    there = workspace.job(job_id) / "results"
    assert (there / "run.parquet").read_bytes() == (alone / "run.parquet").read_bytes()
    found, expected = (read_json(results / "evaluation.json") for results in (there, alone))
    for name in ("measures", "per_query", "retriever", "benchmark", "settings", "counts"):
        assert found[name] == expected[name], name


def until_it_has_made(workspace: Workspace, job_id: str, condition: Callable[[], bool]) -> None:
    """Wait until the job has done so much; no longer where it has failed."""
    until(lambda: condition() or jobs.view(workspace, job_id).state == "failed", "a part of the work", 180.0)
    job = jobs.view(workspace, job_id)
    assert job.state == "running", (job.failure, jobs.read_log(workspace, job_id))


def a_search_loses_a_node(workspace: Workspace, cluster: SmallCluster) -> None:
    rng = np.random.default_rng(7)
    queries = rng.standard_normal((500, 64)).astype(np.float32)
    documents = rng.standard_normal((40_000, 64)).astype(np.float16)
    documents[20_000:] = documents[:20_000]  # so that every score is there twice
    np.save(workspace.root / "q-0.npy", queries)
    for i in range(8):
        np.save(workspace.root / f"d-{i}.npy", documents[i * 5000 : (i + 1) * 5000])
    with jobs.choosing(Place(cluster.address, workers=2)):
        job_id = start(workspace, "searching", divides=True)

    until_it_has_made(workspace, job_id, (workspace.job(job_id) / "paused").exists)
    cluster.kill(a_member_elsewhere(workspace, cluster, job_id))
    (workspace.job(job_id) / "go").touch()
    job = until_state(workspace, job_id, "finished", "failed", patience_s=120.0)
    assert job.state == "finished", jobs.read_log(workspace, job_id)
    assert "A Ray worker was lost" in jobs.read_log(workspace, job_id)
    expected = search(queries, documents, 100)
    found = np.load(workspace.job(job_id) / "found.npz")
    assert found["scores"].tobytes() == expected[0].tobytes()
    assert found["numbers"].tobytes() == expected[1].tobytes()


def bm25_loses_two_nodes(workspace: Workspace, cluster: SmallCluster) -> None:
    rng = random.Random(5)
    words = [f"w{i:x}" for i in range(400)]
    documents = [" ".join(rng.choices(words, k=rng.choice([0, 4, 40]))) for _ in range(6_000)]
    queries = [" ".join(rng.choices(words, k=6)) for _ in range(300)]
    write_json(workspace.root / "texts.json", {"documents": documents, "queries": queries})
    for _ in range(2):
        cluster.add(2)
    with jobs.choosing(Place(cluster.address, workers=2)):
        job_id = start(workspace, "ranking", divides=True)
    folder = workspace.job(job_id)
    for phase in ("indexing", "searching"):
        until_it_has_made(workspace, job_id, (folder / f"paused-{phase}").exists)
        members = until(partial(cluster.members_elsewhere, job_id), "a Ray worker on another node", 120.0)
        cluster.kill(members[0])
        (folder / f"go-{phase}").touch()
    job = until_state(workspace, job_id, "finished", "failed", patience_s=120.0)
    log = jobs.read_log(workspace, job_id)
    assert job.state == "finished", log
    assert log.count("A Ray worker was lost") >= 2
    expected = bm25.rank(bm25.index(documents), queries, 100)
    found = np.load(folder / "found.npz")
    assert found["scores"].tobytes() == expected[0].tobytes()
    assert found["numbers"].tobytes() == expected[1].tobytes()
