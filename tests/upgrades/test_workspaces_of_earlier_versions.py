"""A workspace of each earlier format, as that version wrote it: opened by this one without loss, and used."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import time
import zipfile
from pathlib import Path

import pytest

from cdp import jobs
from cdp.base import versions
from cdp.base.config import EvaluationConfig
from cdp.base.errors import CdpError
from cdp.base.versions import open_workspace
from cdp.base.workspace import Workspace, read_json
from cdp.jobs.launchers import MOVED
from cdp.services import evaluation
from tests.upgrades.facts import facts_of

HERE = Path(__file__).resolve().parent
FORMATS = [f"format-{number}" for number in range(1, versions.current() + 1)]
BEFORE_ROOMS = "before-rooms"
"""Of format 1, made when each kind of job had its worker in another module; with a training that was stopped."""


def opened(name: str, workspace: Workspace) -> Workspace:
    with zipfile.ZipFile(HERE / f"{name}.zip") as archive:
        archive.extractall(workspace.root)
    return workspace


def hashes(workspace: Workspace) -> dict[str, str]:
    return {
        str(path.relative_to(workspace.root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in workspace.root.rglob("*")
        if path.is_file()
    }


def test_there_is_one_of_each_format() -> None:
    made = sorted(path.stem for path in HERE.glob("*.zip"))
    assert made == sorted([*FORMATS, BEFORE_ROOMS])
    assert all((HERE / f"{name}.zip").stat().st_size < 300_000 for name in made)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FORMATS, BEFORE_ROOMS])
def test_everything_is_there(name: str, workspace: Workspace) -> None:
    opened(name, workspace)
    expected = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    before = hashes(workspace)
    open_workspace(workspace)
    assert versions.format_of(workspace) == versions.current()
    seen = json.loads(json.dumps(facts_of(workspace)))
    assert seen == expected
    after = hashes(workspace)
    if versions.current() == 1:
        assert {name: after.get(name) for name in before} == before, "looking changes nothing"
    assert set(before) <= set(after), "nothing is lost"


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_its_jobs_and_models_can_be_used(name: str, workspace: Workspace) -> None:
    open_workspace(opened(name, workspace))
    trained = next(job for job in jobs.list_jobs(workspace) if job.kind == "training")
    config = {"retriever": trained.id, "benchmark": "chaos", "gpus": 0}
    job_id = evaluation.start(workspace, EvaluationConfig.from_dict(config))
    job = jobs.wait(workspace, job_id)
    assert job.state == "finished", job.failure
    jobs.delete(workspace, trained.id)
    with pytest.raises(CdpError, match=trained.id):
        jobs.view(workspace, trained.id)


def test_what_old_jobs_name_as_their_worker_is_a_module_that_is_there(workspace: Workspace) -> None:
    opened(BEFORE_ROOMS, workspace)
    named = {read_json(path)["module"] for path in workspace.jobs.glob("*/spec.json")} - {"tests.jobs.workers.count"}
    assert named == {f"cdp.{kind}.worker" for kind in ("synthesis", "metrics", "training", "evaluation", "studies")}
    assert all(importlib.util.find_spec(MOVED[module]) for module in named)


@pytest.mark.slow
def test_a_training_that_was_stopped_before_the_workers_moved_goes_on(workspace: Workspace) -> None:
    open_workspace(opened(BEFORE_ROOMS, workspace))
    (stopped,) = (job for job in jobs.list_jobs(workspace) if job.state == "stopped")
    taken = [record["step"] for record in jobs.read_metrics(workspace, stopped.id)]
    saved = max(int(path.name.removeprefix("step-")) for path in (stopped.folder / "checkpoints").glob("step-*"))
    assert 0 < saved <= stopped.total
    jobs.resume(workspace, stopped.id)
    while len(steps := [record["step"] for record in jobs.read_metrics(workspace, stopped.id)]) <= len(taken):
        assert jobs.view(workspace, stopped.id).active, (stopped.folder / "worker.log").read_text(encoding="utf-8")
        time.sleep(0.05)
    jobs.stop(workspace, stopped.id)
    assert jobs.wait(workspace, stopped.id).state in ("stopped", "finished")
    assert steps[: len(taken)] == taken
    assert steps[len(taken)] > saved, "it goes on from its checkpoint"
