"""A stop saves what there is; a resume goes on from it, as a new attempt of the same job."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from cdp import jobs
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_jsonl
from tests.jobs.support import logged, saved_step, start, status, until, until_state, until_step


@pytest.mark.slow
def test_stop_saves_and_resume_goes_on(workspace: Workspace) -> None:
    job_id = start(workspace, steps=60, hold_at=5)
    until_step(workspace, job_id, 2)
    assert jobs.stop(workspace, job_id)
    stopped = until_state(workspace, job_id, "stopped", "finished")
    assert stopped.state == "stopped"
    assert "saved" in stopped.message
    saved = saved_step(workspace, job_id)
    assert 2 <= saved < 60

    assert jobs.resume(workspace, job_id) == 2
    job = until_state(workspace, job_id, "finished", "stopped", "failed")
    assert (job.state, job.attempt, job.done) == ("finished", 2, 60)
    began = list(read_jsonl(workspace.job(job_id) / "began.jsonl"))
    assert [(b["attempt"], b["from"]) for b in began] == [(1, 0), (2, saved)]
    assert [m["step"] for m in logged(workspace, job_id)] == list(range(1, 61)), "each step once"
    assert "--- attempt 2 ---" in jobs.read_log(workspace, job_id)


@pytest.mark.slow
def test_of_several_resumes_at_once_one_starts(workspace: Workspace) -> None:
    job_id = start(workspace, "fail", how="data")
    until_state(workspace, job_id, "failed")

    def attempt(_: int) -> int:
        try:
            return jobs.resume(workspace, job_id)
        except ConfigError:
            return 0

    with ThreadPoolExecutor(4) as pool:
        attempts = sorted(pool.map(attempt, range(4)))
    assert attempts[-1] == len([n for n in attempts if n]) + 1, "no two attempts have one number"
    until_state(workspace, job_id, "failed")
    assert jobs.view(workspace, job_id).attempt == attempts[-1]


@pytest.mark.slow
def test_metrics_of_steps_done_again_are_not_shown_twice(workspace: Workspace) -> None:
    job_id = start(workspace, steps=1)
    until_state(workspace, job_id, "finished")
    lines = [(1, 1), (2, 1), (3, 1), (4, 1), (3, 2), (4, 2), (5, 2)]
    with open(workspace.job(job_id) / "metrics.jsonl", "w", encoding="utf-8") as file:
        file.writelines(f'{{"step": {step}, "attempt": {attempt}}}\n' for step, attempt in lines)
        file.write('{"step": 6, "att')
    shown = [(m["step"], m["attempt"]) for m in logged(workspace, job_id)]
    assert shown == [(1, 1), (2, 1), (3, 2), (4, 2), (5, 2)]
    with open(workspace.job(job_id) / "metrics.jsonl", "w", encoding="utf-8") as file:
        file.writelines(f'{{"step": {step}, "attempt": 1{again}}}\n' for step, again in
                        [(1, ""), (2, ""), (2, ', "start": 1'), (3, ', "start": 1'), (3, ', "start": 2')])  # fmt: skip
    again = [(m["step"], m.get("start", 0)) for m in logged(workspace, job_id)]
    assert again == [(1, 0), (2, 1), (3, 2)], "within one attempt a group may start again"


@pytest.mark.slow
def test_a_finished_job_asked_to_stop_too_late_stays_finished_and_its_supervisor_is_reaped(
    workspace: Workspace,
) -> None:
    job_id = start(workspace, steps=2)
    until_state(workspace, job_id, "finished")
    assert not jobs.stop(workspace, job_id)
    assert jobs.view(workspace, job_id).state == "finished"
    assert not (workspace.job(job_id) / "stop.request").exists()
    pid = status(workspace, job_id)["supervisor_pid"]
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the supervisor to be reaped: pages must not gather zombies")


@pytest.mark.slow
def test_a_polite_end_of_the_supervisor_is_a_stop(workspace: Workspace) -> None:
    job_id = start(workspace, steps=100_000)
    until_step(workspace, job_id, 2)
    os.kill(status(workspace, job_id)["supervisor_pid"], signal.SIGTERM)
    stopped = until_state(workspace, job_id, "stopped", "failed", "lost")
    assert stopped.state == "stopped"
    assert "signal from outside" in stopped.message


@pytest.mark.slow
def test_a_silent_worker_is_stalled_and_can_be_stopped(workspace: Workspace) -> None:
    job_id = start(workspace, steps=100, silent_after=3, grace_s=0.5)
    stalled = until_state(workspace, job_id, "stalled")
    assert "No heartbeat" in stalled.message
    jobs.stop(workspace, job_id)
    stopped = until_state(workspace, job_id, "stopped")
    assert "did not stop within 0.5 seconds" in stopped.message
