"""The catalogue is deleted, damaged or held by a stranger: it is made anew, or the message says who has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdp import catalog
from cdp.base.errors import WorkspaceError
from cdp.base.workspace import Workspace
from tests.catalog.support import add_evaluation

pytestmark = pytest.mark.slow

IDS = [f"evaluate-{n}" for n in range(3)]


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    for job_id in IDS:
        add_evaluation(workspace, job_id, "a", values={f"q{n}": n / 50 for n in range(50)})
    catalog.ingest(workspace)
    return workspace


def delete(path: Path) -> None:
    path.unlink()


def garble_the_start(path: Path) -> None:
    with open(path, "r+b") as file:
        file.write(b"no database" * 400)


def garble_the_data(path: Path) -> None:
    size = path.stat().st_size
    with open(path, "r+b") as file:
        for place in range(3 * 4096, size - 1000, 30_000):
            file.seek(place)
            file.write(os.urandom(1000))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def log_of_another(path: Path) -> None:
    path.unlink()
    path.with_name(f"{path.name}.wal").write_bytes(b"leftover" * 100)


def test_it_is_made_anew(filled: Workspace) -> None:
    before = catalog.evaluations(filled)
    for harm in (delete, garble_the_start, garble_the_data, cut, log_of_another):
        harm(filled.catalog)
        assert catalog.evaluations(filled) == before, harm
        assert len(catalog.per_query(filled, IDS[:1])[IDS[0]]) == 50
        assert catalog.query(filled, "SELECT count(*), sum(value) FROM scores WHERE measure = 'ndcg@10'").rows == [
            (150, pytest.approx(3 * sum(n / 50 for n in range(50))))
        ]


@pytest.mark.parametrize("how", ["duckdb.connect(sys.argv[1])", "try_lock(Path(sys.argv[2]))"])
def test_a_stranger_that_holds_it_is_said_to(filled: Workspace, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    script = (
        "import sys, time, duckdb; from pathlib import Path; from cdp.base.locks import try_lock; "
        f"held = {how}; print('held', flush=True); time.sleep(600)"
    )
    stranger = subprocess.Popen(
        [sys.executable, "-c", script, str(filled.catalog), str(filled.catalog_lock)],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert stranger.stdout is not None
    try:
        assert stranger.stdout.readline() == "held\n"
        monkeypatch.setattr("cdp.catalog.database.WAIT_S", 0.3)
        with pytest.raises(WorkspaceError) as caught:
            catalog.evaluations(filled)
        assert "is busy" in str(caught.value)
        assert str(stranger.pid) in str(caught.value) or "duckdb" not in how
        assert str(filled.catalog.parent / "catalog.") in str(caught.value)
    finally:
        stranger.kill()
        stranger.communicate()
    assert len(catalog.evaluations(filled)) == len(IDS)
