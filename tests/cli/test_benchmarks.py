"""Benchmarks on the command line: the registry, a download as a job, subsets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from tests.benchmarks import published
from tests.benchmarks.folders import write_benchmark
from tests.benchmarks.hub_server import Hub, Server
from tests.benchmarks.published import put
from tests.cli.support import answer, refusal, run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jobs_here")]


@pytest.fixture
def the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    found = Hub()
    with Server(found):
        monkeypatch.setenv("HF_ENDPOINT", found.address)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        yield found


def test_the_registry_says_sizes_licences_and_what_is_here(workspace: Workspace) -> None:
    found = {row["name"]: row for row in answer("benchmarks", "list")["registry"]}
    biology = found["bright-biology"]
    assert (biology["documents"], biology["cw"], biology["licence"]) == (57359, 34.61, "cc-by-4.0")
    assert biology["stored"] == ""
    text = run("benchmarks", "show", "scifact").stdout
    assert "5,183 documents, 300 queries (the paper), about 7.8 MB of text" in text
    assert "licence: cc-by-sa-4.0 (hub card of BEIR" in text
    assert "No benchmark is called 'sci'" in refusal("benchmarks", "show", "sci")
    assert "benchmarks download scifact" in refusal("evaluate", "bm25", "--benchmark", "scifact")


def test_a_download_is_a_job_that_says_what_it_brought(workspace: Workspace, the_hub: Hub) -> None:
    collection, qrels = published.beir_jsonl()
    commit = the_hub.commit("BeIR/scifact", collection)
    the_hub.commit("BeIR/scifact-qrels", qrels)
    done = answer("benchmarks", "download", "scifact", "--wait")
    assert done["state"] == "finished"
    assert done["commits"]["BeIR/scifact"] == commit
    shown = answer("benchmarks", "show", "scifact")
    assert shown["info"]["n_documents"] == 3
    assert shown["manifest"]["source"]["commits"]["BeIR/scifact"] == commit
    again = answer("benchmarks", "download", "scifact", "--wait")
    assert again["existed"]
    assert f"read at: BeIR/scifact {commit}" in run("benchmarks", "show", "scifact").stdout


def test_without_a_network_the_job_fails_with_what_to_do(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    done = run("benchmarks", "download", "scifact", "--wait", "--json", code=1)
    job = answer("jobs", "show", json.loads(done.stdout)["id"])
    assert job["failure"]["kind"] == "network"
    assert "--folder FOLDER" in job["failure"]["hint"]


def test_from_a_folder_and_a_subset_of_it(workspace: Workspace, tmp_path: Path) -> None:
    folder = put(tmp_path / "BRIGHT", published.bright())
    done = answer("benchmarks", "download", "bright-biology", "--folder", str(folder), "--wait")
    assert done["benchmark"] == "bright-biology"
    subset = answer("benchmarks", "sample", "bright-biology", "--queries", "1", "--documents", "2")
    assert (subset["id"], subset["n_documents"]) == ("bright-biology-sample-1q-2d", 2)
    assert any("higher than on the whole" in warning for warning in subset["warnings"])
    listed = answer("benchmarks", "list")
    assert [info["name"] for info in listed["own"]] == ["bright-biology-sample-1q-2d"]
    (row,) = [row for row in listed["registry"] if row["stored"]]
    assert row["name"] == "bright-biology"
    assert answer("benchmarks", "delete", subset["id"])["deleted"]
    assert "no folder" in refusal("benchmarks", "download", "musique", "--folder", str(tmp_path / "gone"))
    assert "is not MuSiQue as it is published" in refusal("benchmarks", "download", "musique", "--folder", str(folder))
    both = refusal("benchmarks", "download", "musique", "--folder", str(folder), "--revision", "main")
    assert "either a folder or a revision" in both


def test_an_own_benchmark_that_is_only_called_the_same_stands_for_nothing(workspace: Workspace, tmp_path: Path) -> None:
    answer("benchmarks", "add", str(write_benchmark(tmp_path / "scifact")))
    listed = answer("benchmarks", "list")
    assert [info["name"] for info in listed["own"]] == ["scifact"]
    (row,) = [row for row in listed["registry"] if row["name"] == "scifact"]
    assert row["stored"] == ""


def test_what_has_to_be_said_beside_a_score_is_said(workspace: Workspace, tmp_path: Path) -> None:
    queries = [{"_id": "q1", "text": "moon and sea"}, {"_id": "q2", "text": "zebra"}]
    qrels = {"test": "q1\td1\t1\nq2\td2\t1\n"}
    added = run("benchmarks", "add", str(write_benchmark(tmp_path / "small", queries=queries, qrels=qrels))).stdout
    assert added.startswith("in the workspace as: small: 4 documents, ")
    assert "judged queries: test 2\n" in added
    said = "Nothing was retrieved for 1 of 2 judged queries; they count 0."
    assert answer("evaluate", "bm25", "--benchmark", "small", "--wait")["notes"] == [said]
    assert f"small: {said}" in run("results", "compare", "--baseline", "bm25").stdout
    compared = answer("results", "compare", "--baseline", "bm25")
    assert compared["remarks"] == [f"small: {said}"]
    assert compared["rows"][0]["ndcg@10"] == pytest.approx(50.0)
    assert "no stopword list for the language 'klingon'" in refusal("evaluate", "bm25:klingon", "--benchmark", "small")
