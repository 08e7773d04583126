"""From submit to the result: what is written, what is shown, and what is not."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from cdp import jobs
from cdp.base.errors import ConfigError, NotFoundError, WorkspaceError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.jobs.records import read_spec
from tests.jobs.support import logged, start, status, until, until_state, until_step
from tests.pages.support import ended_job


@pytest.mark.slow
def test_a_job_runs_and_tells_its_story_but_no_secret(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    value = "sk-very-secret-0123456789"
    job_id = start(workspace, steps=5, name="Überraschung", secret="TEST_API_KEY", env_secrets={"TEST_API_KEY": value})
    seen: list[jobs.JobView] = []
    job = jobs.wait(workspace, job_id, seen.append, every_s=0.05)
    assert (job.state, job.fraction, job.failure, job.attempt) == ("finished", 1.0, None, 1)
    course = [("queued", "running", "finished").index(view.state) for view in seen]
    assert course == sorted(course)
    assert course[-1] == 2
    assert (job.name, job.done, job.total, job.unit, job.has_model) == ("Überraschung", 5, 5, "steps", True)
    assert job.created <= job.started <= job.ended
    assert read_json(workspace.job(job_id) / "results" / "count.json") == {"id": job_id, "counted": 5}
    assert [m["step"] for m in logged(workspace, job_id)] == [1, 2, 3, 4, 5]
    assert "attempt 1 starts" in jobs.follow_log(workspace, job_id)[0]
    recorded = status(workspace, job_id)
    assert (recorded["phase"], recorded["outcome"], recorded["exit_code"]) == ("ended", "finished", 0)
    whole = jobs.view(workspace, job_id)
    assert whole.size is not None
    assert whole.size > 500
    assert json.loads(json.dumps(whole.to_dict()))["state"] == "finished"
    until(lambda: not list((workspace.root / "queue").glob("*.json")), "its ticket to be given back")

    assert not jobs.stop(workspace, job_id), "it is too late"
    assert jobs.view(workspace, job_id).state == "finished"
    assert not (workspace.job(job_id) / "stop.request").exists()
    pid = recorded["supervisor_pid"]
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the supervisor to be reaped: pages must not gather zombies")

    spec = read_spec(workspace.job(job_id))
    assert spec.cwd == os.fspath(tmp_path), "a relative path means the same at every attempt"
    assert "secret seen" in jobs.follow_log(workspace, job_id)[0]
    assert spec.secrets == ("TEST_API_KEY",)
    for path in workspace.root.rglob("*"):
        if path.is_file():
            assert value.encode() not in path.read_bytes(), path
    with pytest.raises(ConfigError, match="TEST_API_KEY"):
        jobs.resume(workspace, job_id)


def test_jobs_are_found_by_id_by_its_beginning_and_by_name(workspace: Workspace) -> None:
    first, second = (ended_job(workspace, name, "training", {}, name="same").name for name in ("test-a1", "test-b2"))
    assert jobs.resolve_job(workspace, first) == first
    assert jobs.resolve_job(workspace, "same") == second, "of one name, the newest"
    unique = next(first[:n] for n in range(1, len(first)) if not second.startswith(first[:n]))
    assert jobs.resolve_job(workspace, unique) == first
    with pytest.raises(ConfigError, match="more than one job"):
        jobs.resolve_job(workspace, "test-")
    with pytest.raises(NotFoundError, match="nothing"):
        jobs.resolve_job(workspace, "nothing")
    for bad in ("../escape", "", "/"):
        with pytest.raises(NotFoundError):
            jobs.resolve_job(workspace, bad)


@pytest.mark.slow
def test_an_ended_job_can_be_deleted_and_an_active_one_cannot(workspace: Workspace) -> None:
    job_id = start(workspace, hold_at=1)
    until_step(workspace, job_id, 1)
    for forbidden in (jobs.delete, jobs.resume):
        with pytest.raises(ConfigError, match="still active"):
            forbidden(workspace, job_id)
    os.kill(status(workspace, job_id)["supervisor_pid"], signal.SIGTERM)
    stopped = until_state(workspace, job_id, "stopped", "failed", "lost")
    assert stopped.state == "stopped", "a polite end of the supervisor is a stop"
    assert "signal from outside" in stopped.message
    assert not jobs.stop(workspace, job_id), "there is nothing to stop any more"
    jobs.delete(workspace, job_id)
    assert jobs.list_jobs(workspace) == []
    assert list(workspace.jobs.iterdir()) == []
    with pytest.raises(NotFoundError):
        jobs.view(workspace, job_id)


def test_a_damaged_specification_is_shown_not_hidden(workspace: Workspace) -> None:
    folder = workspace.job("train-broken")
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text('{"id": "train-br')
    (job,) = jobs.list_jobs(workspace)
    assert (job.id, job.state) == ("train-broken", "failed")
    assert job.failure is not None
    assert "spec.json" in job.failure["message"]
    with pytest.raises(WorkspaceError, match=r"spec\.json"):
        jobs.view(workspace, "train-broken")


def test_what_cannot_be_given_is_refused_at_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="offers 0"):
        start(workspace, device=jobs.DeviceRequest.gpus(2))
    for text in ("soon", "nan", "inf"):
        monkeypatch.setenv("CDP_STOP_GRACE_S", text)
        with pytest.raises(ConfigError, match=f"a number of seconds, not '{text}'"):
            start(workspace)
    monkeypatch.delenv("CDP_STOP_GRACE_S")
    monkeypatch.setenv("CDP_CPU_SLOTS", "many")
    with pytest.raises(ConfigError, match="CDP_CPU_SLOTS"):
        start(workspace)
    assert jobs.list_jobs(workspace) == []


def test_a_workspace_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(WorkspaceError, match="file"):
        start(Workspace(tmp_path / "file"))


def test_a_folder_without_a_specification_is_no_job(workspace: Workspace) -> None:
    workspace.job("half-made").mkdir(parents=True)
    write_json(workspace.job("half-made") / "status.json", {"phase": "queued"})
    assert jobs.list_jobs(workspace) == []
