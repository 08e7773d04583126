"""The worker in job folders written by hand: in processes of its own, and its ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval

from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, load_benchmark
from tests.benchmarks.folders import QRELS, write_benchmark
from tests.evaluation.support import read_run
from tests.support import work

pytestmark = pytest.mark.slow


def run(workspace: Workspace, job_id: str, *, stop: bool = False, **config: Any) -> tuple[Path, int]:
    """Run one job to its end, here: its folder and exit code."""
    folder = workspace.job(job_id)
    folder.mkdir(parents=True)
    spec = {"id": job_id, "kind": "evaluation", "config": {"retriever": "static-minilm", "gpus": 0, **config}}
    (folder / "spec.json").write_text(json.dumps(spec))
    if stop:
        (folder / "stop.request").touch()
    return folder, work("cdp.workers.evaluation", folder)


def test_writes_scores_and_the_run(workspace: Workspace, tmp_path: Path) -> None:
    source = write_benchmark(tmp_path / "small")
    add_benchmark(source, workspace)
    folder, code = run(workspace, "e1", benchmark="small", top_k=10)
    assert code == 0
    result = json.loads((folder / "results" / "evaluation.json").read_text())
    benchmark = load_benchmark(source)
    assert result["id"] == "e1"
    assert result["retriever"]["id"] == "static-minilm"
    assert result["retriever"]["kind"] == "preset"
    assert len(result["retriever"]["hash"]) == 16
    assert result["benchmark"]["name"] == "small"
    assert result["benchmark"]["split"] == "test"
    assert result["benchmark"]["hash"] == benchmark.hash
    assert (result["benchmark"]["n_queries"], result["benchmark"]["n_documents"]) == (3, 4)
    assert result["per_query"]["query_ids"] == ["q1", "q2", "q3"]
    theirs = pytrec_eval.RelevanceEvaluator(benchmark.qrels, {"ndcg_cut.10"}).evaluate(
        read_run(folder / "results" / "run.parquet")
    )
    expected = [theirs[query]["ndcg_cut_10"] for query in benchmark.query_ids]
    np.testing.assert_allclose(result["per_query"]["ndcg@10"], expected, atol=1e-9)
    assert result["measures"]["ndcg@10"] == pytest.approx(np.mean(expected), abs=1e-9)
    assert json.loads((folder / "heartbeat.json").read_text())["phase"] == "done"
    assert not (folder / "failure.json").exists()

    again, code = run(workspace, "e2", benchmark=str(source), top_k=10, protocol="paper")
    assert code == 0
    repeated = json.loads((again / "results" / "evaluation.json").read_text())
    assert repeated["counts"]["embeddings_reused"] == 4
    assert repeated["measures"] == result["measures"]


def test_bm25_is_a_retriever_too(workspace: Workspace, tmp_path: Path) -> None:
    source = write_benchmark(tmp_path / "small")
    folder, code = run(workspace, "e1", benchmark=str(source), retriever="bm25", top_k=10)
    assert code == 0
    result = json.loads((folder / "results" / "evaluation.json").read_text())
    assert result["retriever"]["name"] == "BM25"
    assert result["settings"]["similarity"] == "bm25"
    assert read_run(folder / "results" / "run.parquet")["q1"]


def test_a_stop_ends_without_a_result(workspace: Workspace, tmp_path: Path) -> None:
    source = write_benchmark(tmp_path / "small")
    folder, code = run(workspace, "e1", stop=True, benchmark=str(source))
    assert code == 0
    assert not (folder / "results" / "evaluation.json").exists()
    assert not (folder / "failure.json").exists()


@pytest.mark.parametrize(
    ("config", "kind", "said"),
    [
        ({"benchmark": "nothing"}, "configuration", "No benchmark is called 'nothing'"),
        ({"benchmark": "{folder}", "retriever": "no such model"}, "configuration", "no such model"),
        ({"benchmark": "{folder}", "split": "dev"}, "data", "no split 'dev'"),
        ({"benchmark": "{folder}", "top_k": 1}, "configuration", "'top_k' must be at least 10"),
        ({"benchmark": "{unknown}"}, "data", "'gone' in line 6"),
    ],
)
def test_what_cannot_be_evaluated_is_said_in_one_sentence(
    workspace: Workspace, tmp_path: Path, config: dict[str, Any], kind: str, said: str
) -> None:
    folders = {
        "folder": str(write_benchmark(tmp_path / "small")),
        "unknown": str(write_benchmark(tmp_path / "unknown", qrels={"test": QRELS + "q1\tgone\t1\n"})),
    }
    filled = {name: value.format(**folders) if isinstance(value, str) else value for name, value in config.items()}
    folder, code = run(workspace, "e1", **filled)
    assert code == 1
    failure = json.loads((folder / "failure.json").read_text())
    assert failure["kind"] == kind
    assert said in f"{failure['message']} {failure['hint']}"
    assert not (folder / "results").exists()
