"""The model of a test's winner stays and is a retriever like any that was trained; the others leave."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.results import models, naming
from cdp.retrievers import leakage, resolve
from cdp.services import training
from cdp.studies import kept, records
from cdp.workers.evaluation import main as evaluate
from cdp.workers.study import main as run_study
from tests.studies.conftest import study_job
from tests.support_models import tiny_static

pytestmark = pytest.mark.slow

PLAN = {"per_doc": "1, 2", "seeds": "0, 1", "steps": 12, "keep": "best"}


def ran(workspace: Workspace, name: str, query_set: str, benchmarks: list[str], tiny: str, **changes: str) -> Path:
    folder = study_job(
        workspace, name, query_set, benchmarks[2:], retrievers=tiny, dev=benchmarks[0], **{**PLAN, **changes}
    )
    spec = read_json(folder / "spec.json")
    # At the retriever's own rate: options of an answer are trained no other way.
    write_json(folder / "spec.json", {**spec, "config": {**spec["config"], "learning_rate": ""}})
    write_json(folder / "status.json", {"phase": "ended", "outcome": "finished", "attempt": 1})
    run_study(Job(folder))
    return folder


def test_the_winner_scores_as_in_the_study_and_is_offered_everywhere(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    folder = ran(workspace, "study-1", query_set, benchmarks, tiny)
    about = records.kept(folder)
    assert about is not None
    assert not (folder / kept.FOLDER).exists()
    of_option = [
        r for r in records.list_records(folder)
        if r["condition"] and (r["condition"]["per_doc"], r["condition"]["seed"]) == (about["per_doc"], about["seed"])
    ]  # fmt: skip
    # The seed is the one of its option that was best on dev.
    best = {
        r["condition"]["seed"]: max(e["ndcg@10"] for e in r["training"]["evaluations"])
        for r in records.list_records(folder)
        if r["condition"] and r["condition"]["per_doc"] == about["per_doc"]
    }
    assert best[about["seed"]] == max(best.values())

    spec = {"id": "evaluation-1", "kind": "evaluation", "name": "e"}
    config = {"retriever": "study-1", "benchmark": benchmarks[2], "gpus": 0, "protocol": "paper"}
    write_json(workspace.job("evaluation-1") / "spec.json", {**spec, "config": config})
    evaluate(Job(workspace.job("evaluation-1")))
    alone = read_json(workspace.job("evaluation-1") / "results" / "evaluation.json")
    (in_study,) = of_option[0]["evaluations"].values()
    order = [alone["per_query"]["query_ids"].index(query) for query in in_study["query_ids"]]
    np.testing.assert_allclose(in_study["ndcg@10"], np.array(alone["per_query"]["ndcg@10"])[order], atol=1e-6)

    assert resolve("study-1", workspace).title == "Winner of study-1"
    assert naming.retriever(workspace, "Winner of study-1") == "study-1"
    assert [choice.id for choice in training.list_retrievers(workspace) if choice.kind == "job"] == ["study-1"]
    (model,) = models.list_models(workspace)
    assert (model.title, model.base, model.query_set) == ("Winner of study-1", tiny, query_set)
    assert [score.benchmark for score in model.scores] == ["long/test"]
    assert leakage.seen(workspace, "study-1").size > 0


def test_a_repeated_test_trains_the_winner_for_its_model_alone(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    first = ran(workspace, "study-1", query_set, benchmarks, tiny)
    shutil.rmtree(first / "model")
    assert records.kept(first) is None
    second = ran(workspace, "study-2", query_set, benchmarks, tiny)
    about = read_json(second / "results" / "study.json")
    assert (about["trained"], about["reused"]) == (0, 4)
    assert records.kept(second) is not None


def test_all_models_stay_where_that_is_asked(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    folder = ran(workspace, "study-1", query_set, benchmarks, tiny, keep="all")
    assert len(list((folder / kept.FOLDER).glob("*/model/modules.json"))) == 2
    assert records.kept(folder) is not None


def test_each_retriever_of_a_plan_keeps_its_own_models(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str, tmp_path: Path
) -> None:
    other = str(tiny_static(tmp_path / "other", seed=1))
    folder = ran(workspace, "study-1", query_set, benchmarks, f"{tiny}, {other}", keep="all", seeds="0")
    found = [read_json(path) for path in (folder / kept.FOLDER).glob(f"*/{kept.ABOUT}")]
    assert len(found) == 4
    assert {(about["result"]["retriever"], about["per_doc"]) for about in found} == {
        (retriever, per_doc) for retriever in (tiny, other) for per_doc in (1, 2)
    }


def test_a_plain_study_keeps_no_model(workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str) -> None:
    folder = ran(workspace, "study-1", query_set, benchmarks, tiny, keep="none")
    assert not (folder / "model").exists()
    assert naming.trained(workspace) == []
