"""A stop saves what there is; a resume goes on from it, as a new attempt of the same job."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from cdp import jobs
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_json, read_jsonl, write_json
from tests.jobs.support import lives, logged, saved_step, start, status, until_state, until_step
from tests.pages.support import ended_job

COUNT = "tests.jobs.workers.count"


@pytest.mark.slow
def test_stop_saves_and_resume_goes_on(workspace: Workspace) -> None:
    job_id = start(workspace, steps=12, hold_at=5)
    until_step(workspace, job_id, 2)
    assert jobs.stop(workspace, job_id)
    stopped = until_state(workspace, job_id, "stopped", "finished")
    assert stopped.state == "stopped"
    assert "saved" in stopped.message
    saved = saved_step(workspace, job_id)
    assert 2 <= saved < 12

    assert jobs.resume(workspace, job_id) == 2
    job = until_state(workspace, job_id, "finished", "stopped", "failed")
    assert (job.state, job.attempt, job.done) == ("finished", 2, 12)
    began = list(read_jsonl(workspace.job(job_id) / "began.jsonl"))
    assert [(b["attempt"], b["from"]) for b in began] == [(1, 0), (2, saved)]
    assert [m["step"] for m in logged(workspace, job_id)] == list(range(1, 13)), "each step once"
    assert "--- attempt 2 ---" in jobs.follow_log(workspace, job_id)[0]


@pytest.mark.slow
def test_of_several_resumes_at_once_one_starts(workspace: Workspace) -> None:
    job_id = ended_job(workspace, "train-1", "training", {}, outcome="failed").name
    write_json(workspace.job(job_id) / "spec.json", {**read_json(workspace.job(job_id) / "spec.json"), "module": COUNT})

    def attempt(_: int) -> int:
        try:
            return jobs.resume(workspace, job_id)
        except ConfigError:
            return 0

    with ThreadPoolExecutor(4) as pool:
        attempts = sorted(pool.map(attempt, range(4)))
    assert attempts[-1] == len([n for n in attempts if n]) + 1, "no two attempts have one number"
    assert until_state(workspace, job_id, "finished").attempt == attempts[-1]


def test_metrics_of_steps_done_again_are_not_shown_twice(workspace: Workspace) -> None:
    job_id = ended_job(workspace, "train-1", "training", {}).name
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
def test_a_silent_and_deaf_worker_is_stalled_and_ends_by_force_after_its_grace(workspace: Workspace) -> None:
    """It hears neither SIGTERM nor the request file; its checkpoint is kept all the same."""
    job_id = start(workspace, steps=100, silent_after=3, ignore_stop=True, grace_s=3.0)
    stalled = until_state(workspace, job_id, "stalled")
    assert "No heartbeat" in stalled.message
    worker = status(workspace, job_id)["worker_pid"]
    jobs.stop(workspace, job_id)
    until_state(workspace, job_id, "stopping")
    assert lives(worker), "it has its grace first"
    stopped = until_state(workspace, job_id, "stopped")
    assert "did not stop within 3 seconds" in stopped.message
    assert not lives(worker)
    assert saved_step(workspace, job_id) == 3
