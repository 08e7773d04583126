"""One file of a workspace is damaged: it is named, and whatever lists or shows other things goes on."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from tests.fuzz.damaged_workspace import attempt, run, template

SHORT = 12
LONG = 10_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The workspace that each test copies."""
    return template(tmp_path_factory.mktemp("made"))


@pytest.fixture
def copied(made: Workspace, tmp_path: Path) -> Workspace:
    shutil.copytree(made.root, tmp_path / "workspace")
    return Workspace(tmp_path / "workspace")


def _attack(n: int, made: Workspace, folder: Path) -> None:
    wrong = []
    for seed in range(n):
        case = folder / "case"
        case.mkdir()
        try:
            attempt(made, case, random.Random(seed))
        except Exception as error:
            wrong.append(f"seed {seed}: {type(error).__name__}: {str(error)[:300]} {getattr(error, '__notes__', '')}")
        shutil.rmtree(case)
    assert not wrong, "\n".join([f"{len(wrong)} of {n}", *wrong[:20]])


@pytest.mark.slow
def test_a_few_damaged_files(made: Workspace, tmp_path: Path) -> None:
    _attack(SHORT, made, tmp_path)


@pytest.mark.soak
def test_ten_thousand_damaged_files(made: Workspace, tmp_path: Path) -> None:
    _attack(LONG, made, tmp_path)


@pytest.mark.slow
def test_a_damaged_record_is_named_and_the_listing_goes_on(copied: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    damage = {
        "queries list": _first(copied.queries, "*/manifest.json"),
        "corpus list": _first(copied.corpora, "*/manifest.json"),
    }
    for command, path in damage.items():
        for data in (b"[" * 100_000, b'{"id": 5, "name": []}', b"null", b"{"):
            path.write_bytes(data)
            caplog.clear()
            assert run(copied, command)[0] == 0
            assert str(path) in caplog.text, f"{command} does not name {path.name}"


@pytest.mark.slow
def test_a_damaged_job_does_not_hide_the_others(copied: Workspace) -> None:
    n = sum(1 for _ in copied.jobs.iterdir())
    job = _first(copied.jobs, "training-*/status.json").parent
    for name in ("status.json", "heartbeat.json"):
        for value in ({"attempt": {}, "done": "x", "total": [], "history": 5, "devices": {}}, [], "[" * 100_000):
            (job / name).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
            code, said = run(copied, "jobs list")
            assert code == 0, said
            assert run(copied, f"jobs show {job.name}")[0] == 0
    assert n == 7


@pytest.mark.slow
def test_damaged_measures_are_measured_anew(copied: Workspace) -> None:
    path = _first(copied.queries, "*/measures/*.json")
    before = json.loads(path.read_bytes())
    path.write_text(json.dumps({**before, "cw": {**before["cw"], "histogram": 7}}), encoding="utf-8")
    assert run(copied, "metrics docs --quick")[0] == 0
    assert json.loads(path.read_bytes()) == before


def _first(folder: Path, pattern: str) -> Path:
    return next(iter(sorted(folder.glob(pattern))))
