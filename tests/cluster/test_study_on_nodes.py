"""A study whose conditions are spread over a real cluster, one node of which dies: the records of one machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json
from cdp.cli import main
from cdp.jobs import Place
from cdp.services import studies
from cdp.studies import StudyConfig, records
from tests.cluster.conftest import SmallCluster
from tests.jobs.support import until, until_state

pytestmark = pytest.mark.slow

PATIENCE_S = 400.0
"""Each worker imports torch, and they share two processors."""

CONDITIONS = 4


def test_a_study_on_a_cluster_ends_as_on_one_machine(
    workspace: Workspace, wide_cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["demo"]) == 0
    with jobs.choosing(Place(wide_cluster.address, workers=2)):
        there = begin(workspace)
    until(lambda: of_conditions(workspace.job(there)), "the first condition", PATIENCE_S)
    wide_cluster.kill(node_of_a_worker(wide_cluster, there))
    done = until_state(workspace, there, "finished", "failed", patience_s=PATIENCE_S)
    log = jobs.read_log(workspace, there)
    assert done.state == "finished", log
    assert "A Ray worker was lost with part" in log
    result = read_json(workspace.job(there) / "results" / "study.json")
    assert (result["trained"] + result["reused"], result["failed"]) == (CONDITIONS, 0)
    report = studies.report(workspace, there)
    assert (report.planned, report.finished, report.failures) == (CONDITIONS, CONDITIONS, ())
    found = scores(workspace.job(there))
    assert len(found) == CONDITIONS + 2, "and BM25 and the untrained retriever"
    assert not list((workspace.job(there) / "checkpoints").glob("*"))

    shutil.rmtree(workspace.job(there) / records.FOLDER)  # or they would be found and not made again
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as each worker with one CPU has: sums are in another order with two
    here = begin(workspace)
    done = until_state(workspace, here, "finished", "failed", patience_s=PATIENCE_S)
    assert done.state == "finished", jobs.read_log(workspace, here)
    assert scores(workspace.job(here)) == found


def begin(workspace: Workspace) -> str:
    config = StudyConfig.from_dict(
        {
            "query_sets": "demo paraphrase", "benchmarks": "demo", "retrievers": "static-minilm", "per_doc": "1, 4",
            "weightings": "none, cw", "seeds": "0", "epochs": 12, "bm25": True,
        }
    )  # fmt: skip
    return studies.run(workspace, config).job_id


def of_conditions(folder: Path) -> list[dict[str, Any]]:
    return [record for record in records.list_records(folder) if record["condition"] is not None]


def scores(folder: Path) -> dict[str, Any]:
    """Of every record, by its name: the measures, and NDCG@10 of each query."""
    kept = {path.stem: records.load(folder, path.stem) for path in (folder / records.FOLDER).glob("*.json")}
    return {
        key: {place: (e["measures"], e["query_ids"], e["ndcg@10"]) for place, e in record["evaluations"].items()}
        for key, record in kept.items()
        if record is not None
    }


def node_of_a_worker(cluster: SmallCluster, job_id: str) -> str:
    """A node with a Ray worker of the job on it, and not the job's own."""
    own = cluster.submissions(job_id)[0]["driver_node_id"]

    def others() -> list[str]:
        answer = httpx.get(f"{cluster.address}/api/v0/actors?detail=true", timeout=30).json()
        actors = answer["data"]["result"]["result"]
        there = [a["node_id"] for a in actors if a["class_name"] == "Member" and a["state"] == "ALIVE"]
        return [node for node in there if node != own]

    found: list[str] = until(others, "a worker on another node", PATIENCE_S)
    return found[0]
