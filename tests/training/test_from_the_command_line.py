"""Trainings as a user starts them, in a fresh workspace: unusual data, plans, sweeps; each with a clear end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace, read_json
from cdp.corpus import read_documents, store
from cdp.query_sets import QuerySet, create, import_queries
from cdp.services import studies
from tests.cli.support import answer, refusal, run
from tests.support import work
from tests.support_models import tiny_retriever, tiny_static
from tests.training.conftest import TOPICS, write_benchmark, write_job

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jobs_here")]
Ask = Callable[..., str]


@pytest.fixture
def ask(workspace: Workspace, tmp_path: Path) -> Ask:
    """Store a corpus of twelve documents and queries for some of them; the query set's id."""
    source = tmp_path / "documents.jsonl"
    documents = [
        {"_id": f"d{i}", "title": topic, "text": f"all about the {topic} " * (400 if i == 0 else 2)}
        for i, topic in enumerate(TOPICS)
    ]
    source.write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")
    with read_documents(source) as result:
        corpus = store(result, "twelve", workspace)

    def asked(n_documents: int, per_doc: int = 2) -> str:
        queries = [(f"d{i}", [f"what is {t}", f"{t} facts"][:per_doc]) for i, t in enumerate(TOPICS[:n_documents])]
        if not queries:
            return create(workspace, QuerySet("none", "none", corpus.id, "", complete=True)).id
        return import_queries(queries, workspace, corpus.id, f"for-{n_documents}").query_set.id

    return asked


def test_an_unknown_set_an_empty_one_and_a_single_pair_are_refused_at_once(ask: Ask, workspace: Workspace) -> None:
    assert "No query set is called 'nothing'. There is none yet" in refusal("train", "nothing", "--wait")
    assert "has no queries to train on" in refusal("train", ask(0), "--wait")
    assert "for one document only" in refusal("train", ask(1, 1), "--wait")
    assert "'batch_size' must be at least 2" in refusal("train", ask(12), "--set", "batch_size=1")
    assert not list(workspace.jobs.glob("*"))


def test_what_a_weighting_needs_is_missed_at_once(ask: Ask, workspace: Workspace, tmp_path: Path) -> None:
    query_set, file = ask(12), tmp_path / "weights.csv"
    file.write_text("query_id,weight\nd0-1,-2\n", encoding="utf-8")
    column = ("train", query_set, "--weighting", "column", "--set")
    assert "There is no file" in refusal(*column, f"weights={tmp_path / 'absent.csv'}")
    assert "d0-1: '-2' is no weight" in refusal(*column, f"weights={file}")
    ri = ("train", query_set, "--weighting", "ri")
    assert "needs 'reasoning'" in refusal(*ri)
    assert "No query set is called 'nothing'" in refusal(*ri, "--set", "reasoning=nothing")
    assert "With 'learning_rate' 0 nothing is learnt" in refusal("train", query_set, "--set", "learning_rate=0")
    assert not list(workspace.jobs.glob("*"))


def test_a_sweep_is_refused_before_any_job_is_submitted(ask: Ask, workspace: Workspace) -> None:
    query_set = ask(12)
    wrong = "No benchmark is called 'nowhere'"
    assert wrong in refusal("sweep", query_set, "--benchmark", "nowhere")
    assert "at least two" in refusal("sweep", query_set, "--benchmark", "any", "--rates", "1e-3")
    assert "No job is called" in refusal("study", "report", "none")
    assert not list(workspace.jobs.glob("*"))


def train(query_set: str, *words: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = answer("train", query_set, "--wait", "--set", "gpus=0", *words, code=code)
    return found


@pytest.mark.soak
def test_a_batch_larger_than_the_data_and_huge_gradients(ask: Ask, tmp_path: Path) -> None:
    query_set, model = ask(12), str(tiny_static(tmp_path / "tiny"))
    settings = ("--retriever", model, "--set", "batch_size=1000", "--set", "epochs=2", "--set", "learning_rate=1e-3")
    settings = (*settings, "--set", "clip_norm=1e-6")  # so that huge gradients are seen to be clipped, too
    result = train(query_set, *settings)
    assert (result["state"], result["steps"], result["batch_size"]) == ("finished", 2, 24)
    assert "The batch is larger than the data: each step sees all 24 pairs." in result["notes"]


def test_a_model_of_nan_fails_with_a_reason(ask: Ask, tmp_path: Path, workspace: Workspace) -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    folder = tiny_static(tmp_path / "tiny")
    model = SentenceTransformer(str(folder), device="cpu")
    with torch.no_grad():
        model[0].embedding.weight.fill_(float("nan"))
    model.save(str(folder), create_model_card=False)
    job = write_job(workspace, "nan", query_set=ask(12), retriever=str(folder), batch_size=8, gpus=0)
    assert work("cdp.workers.training", job) == 1
    failure = read_json(job / "failure.json")
    assert failure["message"] == "The model gives a loss that is no finite number before any training."
    assert failure["hint"].startswith("Are its weights whole?")


@pytest.mark.soak
def test_fp16_on_a_cpu_is_refused_and_bf16_with_checkpointing_trains_on_documents_cut(ask: Ask, tmp_path: Path) -> None:
    model, query_set = str(tiny_retriever(tmp_path / "tiny")), ask(12)
    settings = ("--retriever", model, "--set", "batch_size=8", "--set", "learning_rate=1e-3")
    done = run("train", query_set, "--wait", "--set", "gpus=0", *settings, "--set", "precision=fp16", code=1)
    assert "'precision' fp16 needs a GPU." in done.stdout
    more = ("--set", "precision=bf16", "--set", "gradient_checkpointing=yes")
    result = train(query_set, *settings, *more)
    assert (result["state"], result["precision"]) == ("finished", "bf16")
    assert result["filled_the_limit"] == 1
    assert "1 document cut off at the 128 tokens that the model takes." in result["notes"]


@pytest.mark.soak
def test_a_plan_says_what_the_training_then_does(ask: Ask, tmp_path: Path, workspace: Workspace) -> None:
    settings = ("--retriever", str(tiny_static(tmp_path / "tiny")), "--set", "batch_size=8", "--set", "epochs=3")
    options = (
        ask(12),
        *settings,
        "--per-doc",
        "2",
        "--set",
        "max_documents=10",
        "--set",
        "learning_rate=1e-3",
        "--set",
        "gpus=0",
    )
    planned = answer("train", *options, "--plan")
    assert not list(workspace.jobs.glob("*"))
    assert set(planned["licences"]) == {"model", "documents", "queries"}
    result = answer("train", *options, "--wait")
    for key, value in (("pairs", 20), ("documents", 10), ("steps", 6)):
        assert planned[key] == result[key] == value


@pytest.mark.parametrize(
    ("told", "swept"),
    [({}, ("infonce", "query-only")),
     ({"hard_negatives": 2, "clip_norm": 0.5}, ("hard-negatives", "query-only")),
     ({"distil": 0.5}, ("distil", "query-only")),
     ({"query_source": "multi-query", "reasoning": "r"}, ("infonce", "multi-query"))],
)  # fmt: skip
def test_a_sweep_trains_what_the_training_would(
    ask: Ask, workspace: Workspace, told: dict[str, Any], swept: tuple[str, str]
) -> None:
    write_benchmark(workspace, "judged", test=range(6), dev=range(6, 12))
    config = TrainingConfig.from_dict(
        {"query_set": ask(12), "retriever": "static-minilm", "benchmark": "judged", **told}
    )
    study = studies.sweep(workspace, config, [1e-3, 1e-4])
    assert (*study.losses, *study.query_sources) == swept
    assert study.training == config.loop


def test_a_sweep_trains_each_rate_and_reports_the_best_on_the_dev_split(
    ask: Ask, tmp_path: Path, workspace: Workspace
) -> None:
    write_benchmark(workspace, "judged", test=range(6), dev=range(6, 12))
    model = str(tiny_static(tmp_path / "tiny"))
    answer(
        "sweep", ask(12), "--retriever", model, "--benchmark", "judged", "--rates", "0.05,1e-9",
        "--name", "rates", "--set", "batch_size=8", "--set", "steps=20", "--wait",
    )  # fmt: skip
    found = answer("study", "report", "rates")
    rows = [row for row in found["rows"] if row["rate"] is not None]
    assert [row["rate"] for row in rows] == [1e-9, 0.05]
    assert [[step for step, _ in row["dev"]] for row in rows] == [[7, 14, 20]] * 2
    assert all(row["steps"] == 20 for row in rows)
    text = run("study", "report", "rates").stdout
    assert "## Learning rates" in text
    best = max(rows, key=lambda row: (max(score for _, score in row["dev"]), -row["rate"]))["rate"]
    assert f"learning rate {'5e-2' if best == 0.05 else '1e-9'}, dev NDCG@10" in text
    assert f"a {'higher' if best == 0.05 else 'lower'} one may be better" in text
