"""Somebody sets the clock back by a day: states stay true, the order of jobs stays, results are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdp import catalog, jobs
from cdp.base.workspace import Workspace
from tests.catalog.support import add_evaluation
from tests.faults.support import TRUE_WITHIN_S, kill, resumes_without_loss, supervisor_of
from tests.jobs.support import start, until_state, until_step

DAY_S = 24 * 3600.0
CLOCK = Path(__file__).parent / "clock"


@pytest.fixture
def tomorrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs started now live a day ahead: for them, this process is one whose clock was set back."""
    monkeypatch.setenv("PYTHONPATH", str(CLOCK))
    monkeypatch.setenv("TEST_CLOCK_SHIFT_S", str(DAY_S))


@pytest.mark.slow
@pytest.mark.usefixtures("tomorrow")
def test_jobs_from_before_the_change(workspace: Workspace) -> None:
    hung = start(workspace, steps=100, silent_after=2, grace_s=0.2)
    stalled = until_state(workspace, hung, "stalled", "finished", "failed")
    assert stalled.state == "stalled", "its silence is measured, though its heartbeat lies in the future"
    assert stalled.started > stalled.created, "it does live in the future"
    jobs.stop(workspace, hung)
    until_state(workspace, hung, "stopped")

    job_id = start(workspace, steps=150, hold_at=3)
    until_step(workspace, job_id, 3)
    running = until_state(workspace, job_id, "running", patience_s=TRUE_WITHIN_S)
    assert running.seconds is not None
    assert 0 <= running.seconds < DAY_S / 2
    kill([supervisor_of(workspace, job_id)])
    until_state(workspace, job_id, "lost", patience_s=TRUE_WITHIN_S)
    resumes_without_loss(workspace, job_id, 150)


@pytest.mark.slow
def test_the_order_of_submission_stays(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two waiting jobs was submitted by a program that lives a day ahead."""
    from tests.faults.support import app, first_line, kill_whole

    blocker = start(workspace, steps=100_000)
    until_step(workspace, blocker, 1)
    ahead = app(workspace, "serve", "2", PYTHONPATH=str(CLOCK), TEST_CLOCK_SHIFT_S=str(DAY_S))
    first = first_line(ahead)
    kill_whole(ahead)
    second = start(workspace, steps=2)
    assert [jobs.view(workspace, job_id).position for job_id in (first, second)] == [1, 2]
    assert [job.id for job in jobs.list_jobs(workspace)] == [second, first, blocker]
    jobs.stop(workspace, blocker)
    until_state(workspace, second, "finished")
    assert jobs.view(workspace, first).state == "finished"


@pytest.mark.slow
def test_results_written_by_an_earlier_clock_are_taken_in(workspace: Workspace) -> None:
    add_evaluation(workspace, "evaluate-1", "a", values={"q1": 0.25})
    assert catalog.evaluations(workspace)[0]["ndcg@10"] == 0.25
    add_evaluation(workspace, "evaluate-1", "a", values={"q1": 0.75})
    path = workspace.job("evaluate-1") / "results" / "evaluation.json"
    os.utime(path, (0, 0))
    assert catalog.evaluations(workspace)[0]["ndcg@10"] == 0.75
