"""The short form of the whole journey, for ``make test``: documents, queries, and from Launch an evaluation,
all on a cluster of two nodes; what comes of it is what one machine has. It needs Ray.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.base.workspace import SHIPPED_DATA, Workspace
from tests.cluster.conftest import SmallCluster, of_nodes
from tests.cluster.dashboard import launched, runs_in_compare
from tests.cluster.journey import Journey, Upload, same_files, same_results
from tests.synthesis.server import KEY, MODEL, chat_server

pytestmark = pytest.mark.slow

DEMO = SHIPPED_DATA / "demo"


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[SmallCluster]:
    yield from of_nodes(2, 2, long=False)


def test_queries_by_a_command_and_an_evaluation_from_launch(
    two_nodes: SmallCluster, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BM25 is evaluated, for it needs no torch: each of its processes would take seconds to load that. Of the commands
    only that for the cluster is a process of its own."""
    monkeypatch.setenv("CDP_API_KEY", KEY)
    upload = Upload(DEMO / "corpus.jsonl", DEMO, Path(), Path())
    here = Journey(Workspace(tmp_path / "here"), upload, spawns=False)
    there = Journey(workspace, upload, two_nodes)
    corpus = str(here.type("corpus", "add", str(upload.documents))["id"])
    here.type("benchmarks", "add", str(upload.benchmark), "--name", "demo")
    shutil.copytree(here.workspace.root, there.workspace.root)
    with chat_server() as server:
        monkeypatch.setenv("CDP_BASE_URL", server.url)
        sets = {"model": MODEL, "base_url": server.url}
        words = ("queries", "generate", "--corpus", corpus, "--generator", "openai")
        for journey in (here, there):
            server.asked.clear()
            job_id = journey.begin("queries", *words, **sets)
            journey.end(job_id)
            journey.made["query_set"] = str(journey.result("queries", "synthesis")["query_set"])
            assert (len(server.asked), set(server.asked.values())) == (96, {1}), "nobody is paid twice"
    same_files(here, there, "queries", "queries/{query_set}/queries.jsonl")

    here.end(here.begin("evaluation", "evaluate", "bm25", "--benchmark", "demo"))
    (job,) = launched(workspace, two_nodes, monkeypatch, "evaluate", {"start": "evaluation", "judged": "bm25"})
    there.made["evaluation"] = job.id
    same_results(here, there, "evaluation", "evaluation", ("measures", "per_query"))
    same_files(here, there, "evaluation", "jobs/{evaluation}/results/run.parquet")
    (ndcg,) = runs_in_compare().values()
    assert ndcg == pytest.approx(100 * there.result("evaluation", "evaluation")["measures"]["ndcg@10"], abs=0.06)
