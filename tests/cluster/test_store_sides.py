"""A job through a store in a folder, both sides for real and no Ray: what goes, what comes back, and what stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.jobs.spec import read_spec
from cdp.jobs.store import here
from tests.cluster.sides import Attempt, submitted
from tests.jobs.support import until


@pytest.mark.slow
def test_a_job_goes_there_and_its_files_come_back(workspace: Workspace, tmp_path: Path) -> None:
    folder = submitted(workspace, steps=20, step_s=0.05)
    with Attempt(folder, tmp_path / "store") as attempt:
        assert attempt.wait()["exit_code"] == 0
    assert read_json(folder / "results" / "count.json")["counted"] == 20
    assert read_json(folder / "outcome.json")["outcome"] == "finished"
    assert read_json(folder / "checkpoints" / "last.json") == {"step": 20}
    assert [line["step"] for line in read_jsonl(folder / "metrics.jsonl")] == list(range(1, 21))
    assert "starts after step 0" in (folder / "worker.log").read_text()
    assert not list((tmp_path / "store" / "jobs").rglob("*.json")), "nothing of it is left in the store"


@pytest.mark.slow
def test_after_a_kill_another_node_goes_on_from_the_checkpoint(workspace: Workspace, tmp_path: Path) -> None:
    folder = submitted(workspace, steps=1_000_000, step_s=0.02)
    checkpoint = folder / "checkpoints" / "last.json"
    with Attempt(folder, tmp_path / "store") as attempt:
        until(lambda: checkpoint.is_file() and read_json(checkpoint)["step"] > 20, "a checkpoint to come")
        attempt.kill()
    saved = read_json(checkpoint)["step"]
    here.catch_up(folder, read_spec(folder), f"file://{tmp_path / 'store'}", 1)
    assert read_json(checkpoint)["step"] >= saved
    saved = read_json(checkpoint)["step"]
    with Attempt(folder, tmp_path / "store", 2) as attempt:
        until(lambda: read_json(checkpoint)["step"] > saved, "more steps")
        attempt.stop = True
        attempt.wait()
    assert read_json(folder / "outcome.json")["outcome"] == "stopped"
    assert [(began["attempt"], began["from"]) for began in read_jsonl(folder / "began.jsonl")] == [(1, 0), (2, saved)]
