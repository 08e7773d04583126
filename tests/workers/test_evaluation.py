"""The worker in job folders written by hand: in processes of its own, and its ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval

from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, load_benchmark
from cdp.retrievers.encode import SHARD_TEXTS
from tests.benchmarks.folders import QRELS, write_benchmark
from tests.evaluation.support import read_run
from tests.support import REPOSITORY, work

pytestmark = pytest.mark.slow


def run(
    workspace: Workspace, job_id: str, *, stop: bool = False, processes: int = 0, **config: Any
) -> tuple[Path, int, str]:
    """Run one job to its end: its folder, exit code and output. Several processes start as a launcher starts them.

    Without ``processes`` it runs here, and its output is the test's own.
    """
    folder = workspace.job(job_id)
    folder.mkdir(parents=True)
    spec = {"id": job_id, "kind": "evaluation", "config": {"retriever": "static-minilm", "gpus": 0, **config}}
    (folder / "spec.json").write_text(json.dumps(spec))
    if stop:
        (folder / "stop.request").touch()
    if not processes:
        return folder, work("cdp.workers.evaluation", folder), ""
    launcher = ["torch.distributed.run", "--standalone", "--nproc_per_node", str(processes), "-m"]
    command = [sys.executable, "-m", *(launcher if processes > 1 else []), "cdp.workers.evaluation", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    return folder, done.returncode, done.stdout + done.stderr


def test_writes_scores_and_the_run(workspace: Workspace, tmp_path: Path) -> None:
    source = write_benchmark(tmp_path / "small")
    add_benchmark(source, workspace)
    folder, code, output = run(workspace, "e1", benchmark="small", top_k=10)
    assert code == 0, output
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

    again, code, output = run(workspace, "e2", benchmark=str(source), top_k=10, protocol="paper")
    assert code == 0, output
    repeated = json.loads((again / "results" / "evaluation.json").read_text())
    assert repeated["counts"]["embeddings_reused"] == 4
    assert repeated["measures"] == result["measures"]


def test_bm25_is_a_retriever_too(workspace: Workspace, tmp_path: Path) -> None:
    source = write_benchmark(tmp_path / "small")
    folder, code, output = run(workspace, "e1", benchmark=str(source), retriever="bm25", top_k=10)
    assert code == 0, output
    result = json.loads((folder / "results" / "evaluation.json").read_text())
    assert result["retriever"]["name"] == "BM25"
    assert result["settings"]["similarity"] == "bm25"
    assert read_run(folder / "results" / "run.parquet")["q1"]


def test_a_stop_ends_without_a_result(workspace: Workspace, tmp_path: Path) -> None:
    source = write_benchmark(tmp_path / "small")
    folder, code, output = run(workspace, "e1", stop=True, benchmark=str(source))
    assert code == 0, output
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
        ({"benchmark": "{folder}", "gpus": 64}, "configuration", "64 GPUs were asked for"),
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
    folder, code, output = run(workspace, "e1", **filled)
    assert code == 1, output
    failure = json.loads((folder / "failure.json").read_text())
    assert failure["kind"] == kind
    assert said in f"{failure['message']} {failure['hint']}"
    assert not (folder / "results").exists()


@pytest.mark.soak
def test_two_processes_share_the_encoding_and_find_the_same(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    words = ["river", "bread", "glacier", "metal", "violin", "harbour", "comet"]
    texts = [f"{words[i % 7]} {words[i // 7 % 7]} {i}" for i in range(SHARD_TEXTS + 200)]
    source = write_benchmark(
        tmp_path / "two",
        documents=[{"_id": f"d{i}", "text": text} for i, text in enumerate(texts)],
        queries=[{"_id": f"q{i}", "text": f"which {texts[i]}"} for i in range(0, 70, 7)],
        qrels={"test": "".join(["query-id\tcorpus-id\tscore\n", *(f"q{i}\td{i}\t1\n" for i in range(0, 70, 7))])},
    )
    add_benchmark(source, workspace)
    apart = Workspace(tmp_path / "apart")
    add_benchmark(source, apart)
    results = []
    for used, processes in ((workspace, 2), (apart, 0)):
        folder, code, output = run(used, "e1", benchmark="two", top_k=10, processes=processes)
        assert code == 0, output
        shards = sorted(path.name for path in used.embeddings.glob("*/shard-*.npy"))
        assert shards == ["shard-00000.npy", "shard-00000.npy", "shard-00001.npy"]
        results.append(json.loads((folder / "results" / "evaluation.json").read_text()))
        assert json.loads((folder / "outcome.json").read_text())["outcome"] == "finished"
    assert results[0]["per_query"] == results[1]["per_query"]
    assert results[0]["counts"] == results[1]["counts"]
    _, code, output = run(workspace, "e2", benchmark="two", max_length=8, processes=2, stop=True)
    assert code == 0, output
    assert not (workspace.job("e2") / "results" / "evaluation.json").exists()
