"""Losses and what is trained on as axes of a study: each gives what a training alone gives, and is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.retrievers.leakage import LEAKAGE
from cdp.services import studies
from cdp.studies import records
from cdp.studies.config import StudyConfig
from cdp.studies.gains import LOSS, REASONED
from cdp.training.plan import prepare
from cdp.workers.study import main as run_study
from cdp.workers.training import main as train
from tests.studies.conftest import study_job
from tests.support import work

SETTINGS = {"steps": 4, "batch_size": 8, "learning_rate": 3e-3, "gpus": 0}


def mined(workspace: Workspace, query_set: str, teacher: str) -> str:
    """The same negatives and soft labels as a set of their own."""
    folder = workspace.job("mining-1")
    config = {"query_set": query_set, "retriever": teacher, "teacher": teacher, "negatives": 7}
    write_json(folder / "spec.json", {"id": "mining-1", "kind": "mining", "config": config})
    assert work("cdp.workers.mining", folder) == 0
    return str(read_json(folder / "results" / "mining.json")["query_set"])


def allow_leaks(job: Path, allowed: bool = True) -> None:
    """Train on queries that are a benchmark's by chance, as a training by itself does."""
    spec = read_json(job / "spec.json")
    spec["inputs"][LEAKAGE] = ["any"] if allowed else []
    write_json(job / "spec.json", spec)


@pytest.mark.slow
def test_each_loss_trains_as_a_training_on_the_mined_set(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    losses = {"infonce": (0, 0.0), "hard-negatives": (7, 0.0), "distil": (7, 1.0)}
    folder = study_job(
        workspace, "study-1", query_set, benchmarks, retrievers=tiny, teacher=tiny, per_doc="2", seeds="3",
        losses=", ".join(losses), **SETTINGS,
    )  # fmt: skip
    allow_leaks(folder)
    run_study(Job(folder))
    found = {r["condition"]["loss"]: r for r in records.list_records(folder) if r["condition"]}
    assert found.keys() == losses.keys()
    taught = mined(workspace, query_set, tiny)
    for loss, (negatives, distil) in losses.items():
        config = TrainingConfig(
            query_set=taught, retriever=tiny, per_doc=2, seed=3, hard_negatives=negatives, distil=distil, **SETTINGS
        )
        assert prepare(config, workspace).pairs.content_hash == found[loss]["pairs_hash"]
        alone = workspace.job(f"training-{loss}")
        write_json(alone / "spec.json", {"id": alone.name, "kind": "training", "config": config.to_dict()})
        train(Job(alone))
        lost = read_json(alone / "results" / "training.json")["loss_last"]
        assert found[loss]["training"]["loss_last"] == pytest.approx(lost, rel=1e-5)
    run_study(Job(folder))
    result = read_json(folder / "results" / "study.json")
    assert (result["trained"], result["reused"], result["failed"]) == (0, 3, 0)
    allow_leaks(folder, allowed=False)
    report = studies.report(workspace, "study-1")
    assert {g.condition.loss for g in report.of(LOSS)} == {"hard-negatives", "distil"}


@pytest.mark.slow
def test_reasoned_forms_are_trained_on_beside_the_queries(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    own = query_sets.load(workspace, query_set)
    lines = [
        (line.document_id, [f"why is it that {text}" for text in line.queries])
        for line in query_sets.read_queries(workspace, query_set)
    ]
    reasoned = query_sets.import_queries(iter(lines), workspace, own.corpus_id, "reasoned", language="en").query_set
    config = StudyConfig.from_dict(
        {"query_sets": query_set, "reasoning": reasoned.id, "benchmarks": ", ".join(benchmarks[:2]),
         "dev": f"{benchmarks[2]}:test", "retrievers": tiny, "per_doc": "1, 2", "seeds": "0",
         "query_sources": "query-only, reasoning-only, multi-query", **{k: str(v) for k, v in SETTINGS.items()}}
    )  # fmt: skip
    plan = studies.plan(workspace, config)
    assert len(plan.conditions) == 6
    job = study_job(
        workspace,
        "study-1",
        query_set,
        benchmarks,
        **{k: v for k, v in config.to_dict().items() if k not in ("query_sets", "benchmarks")},
    )
    spec = read_json(job / "spec.json")
    spec["inputs"]["sources"][0]["reasoning"] = reasoned.id
    write_json(job / "spec.json", spec)
    allow_leaks(job)
    run_study(Job(job))
    rows = {(r["condition"]["query_source"], r["condition"]["per_doc"]): r["training"]["pairs"]
            for r in records.list_records(job) if r["condition"]}  # fmt: skip
    assert rows["query-only", 2] == rows["reasoning-only", 2] == 80
    assert rows["multi-query", 2] == 160
    allow_leaks(job, allowed=False)
    assert {g.condition.query_source for g in studies.report(workspace, "study-1").of(REASONED)} == {
        "reasoning-only", "multi-query"
    }  # fmt: skip


def test_unknown_axes_are_refused(workspace: Workspace, query_set: str, benchmarks: list[str]) -> None:
    first = {"query_sets": query_set, "benchmarks": benchmarks[0]}
    for more, named in (
        ({"losses": "infonce, ranknet"}, "ranknet"),
        ({"query_sources": "all"}, "all"),
        ({"losses": "distil", "query_sources": "multi-query"}, "reasoned forms"),
    ):
        with pytest.raises(CdpError, match=named):
            studies.plan(workspace, StudyConfig.from_dict({**first, **more}))
