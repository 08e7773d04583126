"""The worker on two processes, started as a launcher starts it, ends where one process ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer

from cdp.base.workspace import REPOSITORY, Workspace, read_json, read_jsonl
from tests.support import work
from tests.support_models import tiny_retriever, tiny_static
from tests.training.conftest import write_benchmark, write_job

pytestmark = pytest.mark.slow


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["transformer", "static"])
def test_two_processes_train_the_model_that_one_trains(
    workspace: Workspace, query_set: str, tmp_path: Path, kind: str
) -> None:
    folder = tiny_static(tmp_path / "tiny") if kind == "static" else tiny_retriever(tmp_path / "tiny")
    write_benchmark(workspace, "judged", dev=range(12))
    settings = {
        "query_set": query_set, "retriever": str(folder), "batch_size": 8, "learning_rate": 1e-3, "epochs": 4,
        "weighting": "cw", "gpus": 0, "benchmark": "judged", "eval_steps": 6,
    }  # fmt: skip
    launcher = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
        "-m", "cdp.workers.training",
    ]  # fmt: skip
    results, models, lines = {}, [], {}
    for name in ("one", "two"):
        job = write_job(workspace, name, **settings)
        if name == "one":
            assert work("cdp.workers.training", job) == 0
        else:
            done = subprocess.run([*launcher, str(job)], cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stdout + done.stderr
        results[name] = read_json(job / "results" / "training.json")
        models.append(SentenceTransformer(str(job / "model"), device="cpu"))
        lines[name] = list(read_jsonl(job / "metrics.jsonl"))
        losses = [line for line in lines[name] if "loss" in line]
        assert [line["step"] for line in losses] == list(range(1, 17))  # one process writes, once per step
        lines[name] = losses
    assert (results["one"]["processes"], results["two"]["processes"]) == (1, 2)
    assert [e["step"] for e in results["two"]["evaluations"]] == [6, 12, 16]
    assert results["two"]["best_step"] == results["one"]["best_step"]
    assert results["two"]["best_ndcg@10"] == pytest.approx(results["one"]["best_ndcg@10"], abs=1e-6)
    for key in ("steps", "batch_size", "masked", "pairs", "left_out_per_epoch"):
        assert results["one"][key] == results["two"][key], key
    for first, second in zip(lines["one"], lines["two"], strict=True):
        assert second["loss"] == pytest.approx(first["loss"], rel=1e-4, abs=1e-5)
        assert second["gradient_norm"] == pytest.approx(first["gradient_norm"], rel=1e-4, abs=1e-5)
    texts = ["what is a glacier", "all about the volcano"]
    torch.testing.assert_close(*(m.encode(texts, convert_to_tensor=True) for m in models), rtol=1e-3, atol=1e-3)
