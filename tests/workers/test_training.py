"""The worker in a job folder: to the end and stopped by a signal; with LoRA, and failing clearly."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from cdp import query_sets
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.benchmarks import load_benchmark
from cdp.evaluation import evaluate_model
from cdp.retrievers import model_hash, resolve
from tests.support import work
from tests.support_models import tiny_retriever, tiny_static
from tests.training import conftest as fixtures
from tests.training.conftest import TOPICS, write_benchmark, write_job, write_queries

pytestmark = pytest.mark.slow

query_set = fixtures.query_set


def test_training_makes_a_model_that_loads_and_separates_its_pairs(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    retriever = str(tiny_retriever(tmp_path / "tiny", dropout=0.1))
    folder = write_job(
        workspace, "t1", query_set=query_set, retriever=retriever, epochs=8, batch_size=8, learning_rate=6e-3,
        weighting="cw", name="small one",
    )  # fmt: skip
    assert work("cdp.workers.training", folder) == 0
    result = read_json(folder / "results" / "training.json")
    assert result["id"] == "t1"
    assert (result["pairs"], result["documents"], result["steps"], result["stopped"]) == (39, 12, 32, False)
    assert result["loss_last"] < 0.6 * result["loss_first"]
    assert result["masked"] > 0

    model = SentenceTransformer(str(folder / "model"), device="cpu")
    assert model_hash(model) == result["model_hash"] != result["base_hash"]
    assert resolve("t1", workspace).origin == "job"
    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    for stated in (
        "small one",
        query_set,
        "**cw**",
        result["model_hash"],
        "on 39 pairs over 12 documents (",
        "- **Queries**: not recorded; written by unknown",
        "`cdp models show` lists the scores",
        '"kappa": 100.0',
        f"- {result['notes'][0]}",
    ):
        assert stated in card
    assert query_sets.load(workspace, query_set).content_hash == result["query_set_hash"]

    lines = [line for line in read_jsonl(folder / "metrics.jsonl") if "loss" in line]
    assert [line["step"] for line in lines] == list(range(1, 33))
    assert lines[0]["learning_rate"] == 6e-3 > lines[-1]["learning_rate"] > 0
    assert sum(line["masked"] for line in lines) == result["masked"]
    assert read_json(folder / "heartbeat.json")["phase"] == "done"


def test_ri_times_cw_with_lora_keeps_the_best_model_by_a_dev_benchmark(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    corpus = read_json(workspace.query_set(query_set) / "manifest.json")["corpus_id"]
    thought = {f"d{i}": [f"{topic} {topic[::-1]} thought {n}" for n in range(3)] for i, topic in enumerate(TOPICS[:9])}
    write_queries(workspace, "thought", corpus, thought)
    benchmark = write_benchmark(workspace, "dev-set", dev=range(12))
    folder = write_job(
        workspace, "ri", query_set=query_set, retriever=str(tiny_retriever(tmp_path / "tiny")), epochs=2, batch_size=8,
        weighting="ri-cw", reasoning="thought", lora_rank=2, learning_rate=0.04, benchmark="dev-set", eval_steps=2,
    )  # fmt: skip
    assert work("cdp.workers.training", folder) == 0
    result = read_json(folder / "results" / "training.json")
    assert [e["step"] for e in result["evaluations"]] == [2, 4, 6, 8]
    assert result["best_ndcg@10"] == max(e["ndcg@10"] for e in result["evaluations"]) > 0
    assert result["unreasoned"] == 39 - 27
    model = SentenceTransformer(str(folder / "model"), device="cpu")
    found = evaluate_model(model, load_benchmark(benchmark, "dev"))
    assert 100 * found.measures["ndcg@10"] == pytest.approx(result["best_ndcg@10"])
    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    for stated in (
        "**ri-cw**",
        '"lora_rank": 2',
        '"reasoning": "thought"',
    ):
        assert stated in card
    lines = [line for line in read_jsonl(folder / "metrics.jsonl") if "ndcg_at_10" in line]
    assert [line["step"] for line in lines] == [2, 4, 6, 8]


def test_sigterm_stops_after_the_step_and_keeps_what_was_learnt(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    folder = write_job(
        workspace, "long", query_set=query_set, retriever=str(tiny_static(tmp_path / "tiny")), batch_size=8,
        learning_rate=3e-3, epochs=1000, save_steps=50,
    )  # fmt: skip

    def end_when_saved() -> None:
        while not list((folder / "checkpoints").glob("step-*")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # where the worker does not listen, this process goes on
    try:
        ending = threading.Thread(target=end_when_saved, daemon=True)
        ending.start()
        assert work("cdp.workers.training", folder) == 0
        ending.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    stopped = read_json(folder / "results" / "training.json")
    assert stopped["stopped"]
    assert 50 <= stopped["steps"] < stopped["steps_planned"] == 4000
    assert stopped["model_hash"] == model_hash(SentenceTransformer(str(folder / "model"), device="cpu"))

    # Resumed, and stopped by the request file this time: it goes on from where it was.
    (folder / "stop.request").touch()
    assert work("cdp.workers.training", folder) == 0
    assert read_json(folder / "results" / "training.json")["steps"] == stopped["steps"]


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"retriever": "nobody/such-a-model"}, "configuration", "nobody/such-a-model"),
        ({"query_set": "none-such"}, "configuration", "none-such"),
        ({"mini_batch": 4, "retriever": "static-minilm"}, "configuration", "mini_batch"),
    ],
)
def test_failures_say_what_is_wrong(
    workspace: Workspace, query_set: str, tmp_path: Path, settings: dict[str, object], kind: str, words: str
) -> None:
    base = {"query_set": query_set, "retriever": "", "batch_size": 8}
    if "retriever" not in settings:
        base["retriever"] = str(tiny_retriever(tmp_path / "tiny"))
    folder = write_job(workspace, "bad", **{**base, **settings})
    assert work("cdp.workers.training", folder) == 1
    failure = read_json(folder / "failure.json")
    assert failure["kind"] == kind
    assert words in failure["message"]
    assert not (folder / "model").exists()
