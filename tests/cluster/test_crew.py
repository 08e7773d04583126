"""A job's Ray workers on a real cluster: what they know, what they are not shown, and what dies with a node."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.jobs import Place
from tests.cluster.conftest import SmallCluster
from tests.jobs.support import start, until, until_state
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

KEY = "sk-a-key-that-nobody-may-read"


def begin(workspace: Workspace, cluster: SmallCluster, parts: int, seconds: float, **more: Any) -> str:
    with jobs.choosing(Place(cluster.address, workers=2)):
        return start(
            workspace, "crewed", parts=parts, seconds=seconds, divides=True, env_secrets={"A_KEY": KEY}, **more
        )


def answers(workspace: Workspace, job_id: str) -> list[dict[str, Any]]:
    path = workspace.job(job_id) / "answers.jsonl"
    return list(read_jsonl(path)) if path.exists() else []


def begun(workspace: Workspace, job_id: str) -> list[int]:
    """Every part as often as it was begun."""
    paths = (workspace.job(job_id) / "squares").glob("*.begun.jsonl")
    return sorted(int(line["number"]) for path in paths for line in read_jsonl(path))


def test_a_crew(workspace: Workspace, wide_cluster: SmallCluster) -> None:
    """One test, for the cluster takes longer to start than all of it."""
    what_members_know(workspace, wide_cluster)
    an_error_comes_up_as_itself(workspace, wide_cluster)
    stopped_at_once(workspace, wide_cluster)
    a_part_whose_node_dies_is_done_again(workspace, wide_cluster)


def what_members_know(workspace: Workspace, cluster: SmallCluster) -> None:
    job_id = begin(workspace, cluster, 6, 0.3, times=2)
    job = until_state(workspace, job_id, "finished", "failed", patience_s=120.0)
    assert job.state == "finished", jobs.read_log(workspace, job_id)
    done = answers(workspace, job_id)
    assert sorted((a["again"], a["number"]) for a in done) == [(i, n) for i in range(2) for n in range(6)]
    processes = {a["pid"] for a in done}
    assert len(processes) == 2
    assert len({a["node"] for a in done}) == 2, "spread over the nodes"
    assert len({a["made"] for a in done}) == 2, "made once in each process, for both rounds"
    assert {a["umask"] for a in done} == {0o077}
    assert {a["key"] for a in done} == {KEY[-4:]}
    for answer in done:
        known = answer["environment"]
        assert known["CDP_WORKSPACE"] == str(workspace.root)
        assert (known["GOMP_SPINCOUNT"], known["TOKENIZERS_PARALLELISM"]) == ("10000", "false")
        assert known["OMP_NUM_THREADS"] == "1"
        assert known["PYTHONPATH"].split(":")[0] == str(REPOSITORY)
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    until(lambda: not list(workspace.job(job_id).glob("handover-*")), "the keys' file to be gone")


def an_error_comes_up_as_itself(workspace: Workspace, cluster: SmallCluster) -> None:
    job_id = begin(workspace, cluster, 6, 0.1, missing=3)
    job = until_state(workspace, job_id, "failed", "finished", patience_s=120.0)
    assert job.failure is not None
    assert (job.failure["kind"], job.failure["message"]) == ("configuration", "No number is called '3'.")
    assert job.failure["hint"] == "There is: 1, 2."


def stopped_at_once(workspace: Workspace, cluster: SmallCluster) -> None:
    job_id = begin(workspace, cluster, 4, 20.0)
    until(lambda: len(begun(workspace, job_id)) == 2, "two parts to begin", 120.0)
    shown = {
        page: httpx.get(f"{cluster.address}/api/v0/{page}?detail=true&limit=1000", timeout=30).text
        for page in ("actors", "tasks", "workers")
    }
    assert "Member" in shown["actors"]
    assert "Member.do" in shown["tasks"]
    assert [page for page, text in shown.items() if KEY in text] == []
    jobs.stop(workspace, job_id)
    job = until_state(workspace, job_id, "stopped", "failed", "finished", patience_s=15.0)
    assert job.state == "stopped", "it does not wait for the parts"
    assert begun(workspace, job_id) == [0, 1], "no more than one part for each was begun"


def a_part_whose_node_dies_is_done_again(workspace: Workspace, cluster: SmallCluster) -> None:
    job_id = begin(workspace, cluster, 8, 3.0)
    until(lambda: len(answers(workspace, job_id)) >= 2, "the first answers", 120.0)
    own = cluster.submissions(job_id)[0]["driver_node_id"]
    seen = answers(workspace, job_id)
    victim = next(answer["node"] for answer in seen if answer["node"] != own)
    cluster.kill(victim)
    job = until_state(workspace, job_id, "finished", "failed", patience_s=180.0)
    assert job.state == "finished", jobs.read_log(workspace, job_id)
    done = answers(workspace, job_id)
    assert sorted(answer["number"] for answer in done) == list(range(8)), "each once"
    assert len(begun(workspace, job_id)) > 8, "what was under way was begun again"
    last = done[-1]
    assert last["node"] != victim
    squares = {n: read_json(workspace.job(job_id) / "squares" / f"{n}.json")["square"] for n in range(8)}
    assert squares == {n: n**2 for n in range(8)}
    assert re.search(r"A Ray worker was lost with part \d", jobs.read_log(workspace, job_id))
    assert json.dumps(cluster.submissions(job_id)).count(KEY) == 0
