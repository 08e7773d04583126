"""What a worker says of itself: heartbeats that keep their word, and a stop that is heard."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from cdp.base import worker
from cdp.base.errors import InputError
from cdp.base.worker import Job
from cdp.base.workspace import read_json, read_json_or_none, write_json


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's folder as a worker finds it, with no supervisor around."""
    for name in ("CDP_SUPERVISOR_PID", "CDP_ATTEMPT", "RANK"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "jobs" / "j"
    write_json(path / "spec.json", {"id": "j", "config": {"a": 1}})
    return path


def run(folder: Path, main: object) -> int:
    """``worker.run`` in this process; the exit code."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        worker.run(main, [str(folder)])  # type: ignore[arg-type]
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def test_a_longer_silence_is_announced_at_once(folder: Path) -> None:
    job = Job(folder)
    job.progress("loading", 0, 2, "files", next_within_s=5.0)
    job.progress("loading", 1, 2, "files", next_within_s=600.0)
    beat = read_json(folder / "heartbeat.json")
    assert beat is not None
    assert (beat["next_within_s"], beat["done"]) == (600.0, 1)
    assert beat["clock"] <= time.time()


def test_heartbeats_are_cheap_but_the_last_is_written(folder: Path) -> None:
    job = Job(folder)
    job.progress("counting", 1, 10_000, "steps")
    for done in range(2, 10_000):
        job.progress("counting", done, 10_000, "steps")
    assert read_json(folder / "heartbeat.json")["done"] < 10_000
    job.progress("counting", 10_000, 10_000, "steps")
    assert read_json(folder / "heartbeat.json")["done"] == 10_000


def test_a_run_to_the_end_is_finished(folder: Path) -> None:
    assert run(folder, lambda job: job.result("x", {"v": job.config["a"]})) == 0
    assert read_json(folder / "outcome.json")["outcome"] == "finished"
    assert read_json(folder / "results" / "x.json") == {"v": 1}


def test_a_heard_stop_is_stopped(folder: Path) -> None:
    def main(job: Job) -> None:
        assert not job.stop_requested()
        os.kill(os.getpid(), signal.SIGTERM)
        assert job.stop_requested()

    assert run(folder, main) == 0
    assert read_json(folder / "outcome.json")["outcome"] == "stopped"


def test_a_stop_that_came_too_late_to_be_heard_is_finished(folder: Path) -> None:
    def main(job: Job) -> None:
        assert not job.stop_requested()
        write_json(folder / "stop.request", {})

    run(folder, main)
    assert read_json(folder / "outcome.json")["outcome"] == "finished"


def test_a_failure_is_recorded_once_with_its_attempt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDP_ATTEMPT", "2")
    write_json(folder / "failure.json", {"kind": "disk", "message": "old", "attempt": 1})

    def first(job: Job) -> None:
        raise InputError("bad line", file="a.csv", line=3)

    def second(job: Job) -> None:
        raise ConnectionError("the other rank is gone")

    assert run(folder, first) == 1
    assert run(folder, second) == 1
    failure = read_json(folder / "failure.json")
    assert (failure["kind"], failure["attempt"]) == ("data", 2)
    assert failure["message"] == "a.csv, line 3: bad line"
    assert read_json_or_none(folder / "outcome.json") is None


def test_other_ranks_are_silent_but_may_report_a_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")

    def main(job: Job) -> None:
        job.progress("x", 1, 1, "steps")
        job.metric(1, loss=1.0)
        job.result("r", {})
        raise InputError("bad line")

    assert run(folder, main) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["failure.json", "spec.json"]
