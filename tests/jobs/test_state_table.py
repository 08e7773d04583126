"""The state of a job follows from its files, its lock and the clock: the whole table."""

from __future__ import annotations

from typing import Any

import pytest

from cdp.jobs.state import JobFiles, State, derive

NOW = 10_000.0


def status(phase: str = "running", attempt: int = 1, **more: Any) -> dict[str, Any]:
    return {"phase": phase, "attempt": attempt, "started_clock": NOW - 50, **more}


def beat(age: float, within: float = 30.0, attempt: int = 1) -> dict[str, Any]:
    return {"attempt": attempt, "clock": NOW - age, "next_within_s": within}


ENDED_FAILURE = {"kind": "data", "message": "bad line", "hint": "", "log_tail": []}

TABLE: list[tuple[str, JobFiles, bool, State]] = [
    ("submitted, supervisor not yet awake", JobFiles(), True, State.QUEUED),
    ("waits for its turn", JobFiles(status("queued")), True, State.QUEUED),
    ("submitter died before the start", JobFiles(), False, State.LOST),
    ("given to a cluster, not begun there", JobFiles(status("submitted")), False, State.QUEUED),
    ("its supervisor begins there", JobFiles(status("submitted")), True, State.QUEUED),
    ("stop asked before it began there", JobFiles(status("submitted"), stop_requested=True), False, State.STOPPING),
    ("supervisor killed in the queue", JobFiles(status("queued")), False, State.LOST),
    ("stop asked in the queue", JobFiles(status("queued"), stop_requested=True), True, State.STOPPING),
    ("started, no heartbeat yet", JobFiles(status()), True, State.RUNNING),
    ("never a heartbeat", JobFiles(status(started_clock=NOW - 301)), True, State.STALLED),
    ("lively", JobFiles(status(), beat(1)), True, State.RUNNING),
    ("silent as announced", JobFiles(status(), beat(500, within=600)), True, State.RUNNING),
    ("silent beyond its word", JobFiles(status(), beat(31)), True, State.STALLED),
    ("heartbeat of the attempt before", JobFiles(status(attempt=2), beat(900, attempt=1)), True, State.RUNNING),
    ("heartbeat without a clock", JobFiles(status(), {"attempt": 1}), True, State.RUNNING),
    ("heartbeat from before a reboot", JobFiles(status(), beat(-90_000)), True, State.RUNNING),
    ("stop asked", JobFiles(status(), beat(1), stop_requested=True), True, State.STOPPING),
    ("stop asked of a stalled one", JobFiles(status(), beat(99), stop_requested=True), True, State.STOPPING),
    ("finished", JobFiles(status("ended", outcome="finished")), False, State.FINISHED),
    ("finished, supervisor about to leave", JobFiles(status("ended", outcome="finished")), True, State.FINISHED),
    ("stopped", JobFiles(status("ended", outcome="stopped"), stop_requested=True), False, State.STOPPED),
    ("failed", JobFiles(status("ended", outcome="failed", failure=ENDED_FAILURE)), False, State.FAILED),
    ("supervisor killed, worker ending", JobFiles(status(), beat(1), worker_alive=True), False, State.STOPPING),
    ("all killed", JobFiles(status(), beat(1)), False, State.LOST),
    ("all killed during a stop", JobFiles(status(), beat(1), stop_requested=True), False, State.LOST),
    (
        "supervisor killed, worker finished",
        JobFiles(status(), beat(1), outcome={"attempt": 1, "outcome": "finished"}),
        False,
        State.FINISHED,
    ),
    (
        "supervisor killed, worker saved and left",
        JobFiles(status(), beat(1), outcome={"attempt": 1, "outcome": "stopped"}),
        False,
        State.LOST,
    ),
    (
        "supervisor killed, worker failed",
        JobFiles(status(), beat(1), failure={"attempt": 1, **ENDED_FAILURE}),
        False,
        State.FAILED,
    ),
    (
        "cut off; failure and outcome are of the attempt before",
        JobFiles(
            status(attempt=2),
            failure={"attempt": 1, **ENDED_FAILURE},
            outcome={"attempt": 1, "outcome": "finished"},
        ),
        False,
        State.LOST,
    ),
]


@pytest.mark.parametrize(("files", "held", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_every_row_of_the_table(files: JobFiles, held: bool, expected: State) -> None:
    assert derive(files, held, NOW).state is expected


def test_only_living_states_are_active() -> None:
    active = {state for state in State if state.active}
    assert active == {State.QUEUED, State.RUNNING, State.STALLED, State.STOPPING}


@pytest.mark.parametrize("now", [0.0, NOW - 5000, NOW, NOW + 1e9])
def test_no_clock_makes_a_dead_job_live_or_an_ended_one_die(now: float) -> None:
    running = JobFiles(status(), beat(1))
    assert derive(running, False, now).state is State.LOST
    assert derive(running, True, now).state.active
    assert derive(JobFiles(status("ended", outcome="finished")), True, now).state is State.FINISHED


def test_a_lost_job_says_what_to_do() -> None:
    assert "Resume" in derive(JobFiles(status(), beat(1)), False, NOW).message


def test_a_stalled_job_says_since_when() -> None:
    assert "31 seconds" in derive(JobFiles(status(), beat(31)), True, NOW).message
