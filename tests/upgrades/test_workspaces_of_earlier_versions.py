"""A workspace of each earlier format, as that version wrote it: opened by this one without loss, and used."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from cdp import jobs
from cdp.base import versions
from cdp.base.config import EvaluationConfig
from cdp.base.errors import CdpError
from cdp.base.versions import open_workspace
from cdp.base.workspace import Workspace
from cdp.services import evaluation
from tests.upgrades.facts import facts_of

HERE = Path(__file__).resolve().parent
MADE = sorted(path.stem for path in HERE.glob("*.zip"))


@pytest.fixture(params=MADE)
def earlier(request: pytest.FixtureRequest, workspace: Workspace) -> tuple[Workspace, dict[str, object]]:
    """The workspace, and what was to be seen in it when it was made."""
    with zipfile.ZipFile(HERE / f"{request.param}.zip") as archive:
        archive.extractall(workspace.root)
    return workspace, json.loads((HERE / f"{request.param}.json").read_text(encoding="utf-8"))


def hashes(workspace: Workspace) -> dict[str, str]:
    return {
        str(path.relative_to(workspace.root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in workspace.root.rglob("*")
        if path.is_file()
    }


def test_there_is_one_of_each_format() -> None:
    assert [f"format-{number}" for number in range(1, versions.current() + 1)] == MADE
    assert all((HERE / f"{name}.zip").stat().st_size < 200_000 for name in MADE)


@pytest.mark.slow
def test_everything_is_there(earlier: tuple[Workspace, dict[str, object]]) -> None:
    workspace, expected = earlier
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
def test_its_jobs_and_models_can_be_used(earlier: tuple[Workspace, dict[str, object]]) -> None:
    workspace, _ = earlier
    open_workspace(workspace)
    trained = next(job for job in jobs.list_jobs(workspace) if job.kind == "training")
    config = {"retriever": trained.id, "benchmark": "chaos", "gpus": 0}
    job_id = evaluation.start(workspace, EvaluationConfig.from_dict(config))
    job = jobs.wait(workspace, job_id)
    assert job.state == "finished", job.failure
    jobs.delete(workspace, trained.id)
    with pytest.raises(CdpError, match=trained.id):
        jobs.view(workspace, trained.id)
