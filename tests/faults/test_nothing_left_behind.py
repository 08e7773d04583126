"""A job is called over only when no process of it lives, and what a killed process left behind goes by itself."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from cdp import jobs
from cdp.base.errors import NotFoundError
from cdp.base.locks import PREFIX, staging
from cdp.base.workspace import Workspace, read_json_or_none, write_json
from cdp.jobs.devices import DeviceRequest
from cdp.jobs.queue import Queue
from tests.faults.conftest import processes_of
from tests.faults.support import TRUE_WITHIN_S, kill, supervisor_of, worker_of
from tests.jobs.support import lives, start, state, status, until, until_state, until_step


@pytest.mark.slow
def test_a_worker_that_has_no_lock_yet_is_not_called_lost(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It imports torch for seconds before it takes its lock: killed meanwhile, its supervisor leaves it alone."""
    go = tmp_path / "go"
    monkeypatch.setenv("CDP_TEST_GO", str(go))
    job_id = start(workspace, "slow_start")
    until_state(workspace, job_id, "running")
    worker = worker_of(workspace, job_id)
    kill([supervisor_of(workspace, job_id)])
    for _ in range(5):
        assert lives(worker)
        assert state(workspace, job_id) == "stopping"
        assert [str(job.state) for job in jobs.list_jobs(workspace)] == ["stopping"]
    go.touch()
    until(lambda: not lives(worker), "the worker to end, since nobody would see what it does")
    until_state(workspace, job_id, "lost", patience_s=TRUE_WITHIN_S)
    assert not (workspace.job(job_id) / "results").exists(), "it began nothing"
    jobs.resume(workspace, job_id)
    until_state(workspace, job_id, "finished")


def killed_but_for_its_child(workspace: Workspace, job_id: str, *, stop_first: bool = False) -> int:
    """Kill the job's supervisor and worker once that one has started a process, and return the process."""
    attempt = int(status(workspace, job_id)["attempt"])
    told = until(
        lambda: (found := read_json_or_none(workspace.job(job_id) / "child.json"))
        and found["attempt"] == attempt and found, "the worker's child"
    )  # fmt: skip
    until_state(workspace, job_id, "running")
    pids = [supervisor_of(workspace, job_id), worker_of(workspace, job_id)]
    if stop_first:
        write_json(workspace.job(job_id) / "stop.request", {})
    with suppress(ProcessLookupError):  # the worker may have heard the request
        kill(pids)
    return int(told["pid"])


@pytest.mark.slow
def test_what_a_killed_worker_had_started_is_reported_and_can_be_ended(workspace: Workspace) -> None:
    """A resume ends it, a stop, a look at a job that was asked to stop, and the deletion of the job."""
    job_id = start(workspace, "parent", grace_s=0.5)
    first = killed_but_for_its_child(workspace, job_id)
    assert lives(first)
    shown = jobs.view(workspace, job_id)
    assert (shown.state, shown.active) == ("stopping", True)
    assert "remaining processes" in shown.message

    jobs.resume(workspace, job_id)
    second = killed_but_for_its_child(workspace, job_id)
    assert jobs.stop(workspace, job_id)
    until_state(workspace, job_id, "lost")

    jobs.resume(workspace, job_id)
    third = killed_but_for_its_child(workspace, job_id, stop_first=True)
    until_state(workspace, job_id, "lost")

    jobs.resume(workspace, job_id)
    fourth = killed_but_for_its_child(workspace, job_id)
    jobs.delete(workspace, job_id)
    assert jobs.list_jobs(workspace) == []
    until(lambda: not any(map(lives, (first, second, third, fourth))), "the children to be gone")
    until(lambda: not processes_of(workspace), "all processes to be gone")


@pytest.mark.slow
def test_a_stopped_worker_that_leaves_a_process_does_not_use_up_the_grace(workspace: Workspace) -> None:
    job_id = start(workspace, "parent", grace_s=600)
    child = int(until(lambda: read_json_or_none(workspace.job(job_id) / "child.json"), "the worker's child")["pid"])
    until_state(workspace, job_id, "running")
    write_json(workspace.job(job_id) / "stop.request", {})
    until_state(workspace, job_id, "stopped")
    assert not lives(child)


def test_what_a_killed_submitter_left_goes_and_nothing_else(workspace: Workspace) -> None:
    killed = workspace.jobs / f"{PREFIX}1"
    write_json(killed / "train-1" / "status.json", {"phase": "queued"})
    killed.with_name(f"{killed.name}.lock").touch()
    write_json(workspace.jobs / "train-4" / "status.json", {"phase": "ended"})  # its specification was lost
    write_json(workspace.jobs / "train-4" / "model" / "config.json", {})
    with staging(workspace.jobs) as held:  # a job that is being submitted
        assert jobs.list_jobs(workspace) == []
        assert {path.name for path in workspace.jobs.iterdir()} == {held.name, f"{held.name}.lock", "train-4"}


def test_a_ticket_whose_job_is_dead_goes_when_somebody_looks(workspace: Workspace) -> None:
    queue = Queue(workspace)
    queue.add(time.time_ns(), "train-gone", DeviceRequest())
    assert jobs.list_active(workspace) == []
    assert queue.job_ids() == []


@pytest.mark.slow
def test_a_killed_supervisor_leaves_no_ticket_though_no_other_job_comes(workspace: Workspace) -> None:
    job_id = start(workspace, hold_at=1)
    until_step(workspace, job_id, 1)
    kill([supervisor_of(workspace, job_id), worker_of(workspace, job_id)])
    until(lambda: not Queue(workspace).job_ids(), "the submitter to clear the ticket away", TRUE_WITHIN_S)
    assert state(workspace, job_id) == "lost"


def test_a_submit_that_fails_leaves_no_folder(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFoundError):
        jobs.submit(workspace, kind="test", name="x", module="m", config={}, after=["no-such-job"])
    workspace.root.mkdir(exist_ok=True)
    (workspace.root / "queue").write_text("a file where a folder has to be")
    with pytest.raises(Exception, match="queue"):
        start(workspace)
    assert not workspace.jobs.exists() or list(workspace.jobs.iterdir()) == []
