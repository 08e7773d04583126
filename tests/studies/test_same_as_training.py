"""A study's scores are those of a training and an evaluation with the same data, seed and settings."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from cdp.base.errors import ConfigError
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.retrievers import PRESETS
from cdp.services import studies
from cdp.studies import records
from cdp.studies.config import StudyConfig
from cdp.workers.evaluation import main as evaluate
from cdp.workers.study import main as run_study
from cdp.workers.training import main as train
from tests.studies.conftest import study_job
from tests.support_models import tiny_bert, tiny_decoder

SETTINGS = {"steps": 3, "batch_size": 8, "learning_rate": 3e-3, "gpus": 0}


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, folder: Path) -> None:
    """The preset with a tiny model in place of its own; pooling, prompts and similarity stay as they are."""
    module = importlib.import_module("cdp.retrievers.resolve")
    tiny = dataclasses.replace(PRESETS[name], embedded=True)
    monkeypatch.setattr(module, "PRESETS", MappingProxyType({**PRESETS, name: tiny}))
    monkeypatch.setattr(module, "minilm_folder", lambda: folder)


def job(workspace: Workspace, kind: str, job_id: str, **config: object) -> Path:
    folder = workspace.job(job_id)
    write_json(folder / "spec.json", {"id": job_id, "kind": kind, "name": job_id, "config": config})
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_scores_alike_in_a_study_and_by_train_and_evaluate(
    name: str,
    workspace: Workspace,
    query_set: str,
    benchmarks: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make = tiny_decoder if name.startswith("qwen") else tiny_bert
    stand_in(monkeypatch, name, make(tmp_path / "model"))
    folder = study_job(
        workspace, "study-1", query_set, benchmarks[2:], retrievers=name, per_doc="1", seeds="3", **SETTINGS
    )
    run_study(Job(folder))
    (record,) = [r for r in records.list_records(folder) if r["condition"] is not None]
    (in_study,) = record["evaluations"].values()

    train(
        Job(
            job(
                workspace, "training", "training-1", query_set=query_set, retriever=name, per_doc=1, seed=3,
                hard_negatives=0, **SETTINGS,
            )
        )
    )  # fmt: skip
    scored = job(workspace, "evaluation", "evaluation-1", retriever="training-1", benchmark=benchmarks[2], gpus=0)
    evaluate(Job(scored))
    alone = read_json(scored / "results" / "evaluation.json")
    order = [alone["per_query"]["query_ids"].index(query) for query in in_study["query_ids"]]
    np.testing.assert_allclose(in_study["ndcg@10"], np.array(alone["per_query"]["ndcg@10"])[order], atol=1e-6)


@pytest.mark.slow
def test_a_dev_benchmark_keeps_the_best_step_as_a_training_does(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    setting = {**SETTINGS, "steps": 30, "learning_rate": 0.3}
    folder = study_job(
        workspace, "study-1", query_set, benchmarks[2:], retrievers=tiny, per_doc="1", seeds="0", dev=benchmarks[0],
        **setting,
    )  # fmt: skip
    run_study(Job(folder))
    (record,) = [r for r in records.list_records(folder) if r["condition"] is not None]
    alone = job(
        workspace, "training", "training-1", query_set=query_set, retriever=tiny, per_doc=1, hard_negatives=0,
        benchmark=benchmarks[0], **setting,
    )  # fmt: skip
    train(Job(alone))
    result = read_json(alone / "results" / "training.json")
    assert record["training"]["best_step"] == result["best_step"] < result["steps"]


def test_a_dev_benchmark_is_not_reported_on(workspace: Workspace, query_set: str, benchmarks: list[str]) -> None:
    config = StudyConfig.from_dict(
        {"query_sets": query_set, "benchmarks": ", ".join(benchmarks), "dev": f"{benchmarks[0]}:test"}
    )
    with pytest.raises(ConfigError, match="cannot both choose the checkpoints"):
        studies.plan(workspace, config)
