"""Each way to fail gets its kind, a sentence, a hint and the end of the log."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cdp import jobs
from cdp.base.failures import failure_of
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.jobs.logs import classify, log_tail
from tests.jobs.support import start, status, until_state
from tests.support import work

PROCESSES = {"data": "data", "exit code": "bug", "segfault": "bug", "kill": "killed"}
EXCEPTIONS = {
    "configuration": "configuration",
    "network": "network",
    "library network": "network",
    "cuda": "cuda_out_of_memory",
    "host memory": "host_out_of_memory",
    "disk": "disk",
    "bug": "bug",
}


@pytest.mark.slow
def test_workers_that_fail(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDP_CPU_SLOTS", "3")
    ids = {how: start(workspace, "fail", how=how) for how in PROCESSES}
    for how, job_id in ids.items():
        job = until_state(workspace, job_id, "failed", "finished", "stopped", "lost")
        assert job.state == "failed", how
        assert job.failure is not None
        assert job.failure["kind"] == PROCESSES[how], (how, job.failure)
        assert job.failure["message"], how
        assert job.failure["hint"], how
        assert f"about to fail: {how}" in "\n".join(job.failure["log_tail"])
    assert status(workspace, ids["exit code"])["exit_code"] == 3
    assert "over there" in (jobs.view(workspace, ids["exit code"]).failure or {})["message"]
    assert status(workspace, ids["segfault"])["signal"] == signal.SIGSEGV
    assert "line 7" in (jobs.view(workspace, ids["data"]).failure or {})["message"]


@pytest.mark.parametrize("how", EXCEPTIONS)
def test_exceptions_of_workers(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "workspace" / "jobs" / "test-1"
    write_json(folder / "spec.json", {"id": "test-1", "config": {"how": how}})
    assert work("tests.jobs.workers.fail", folder) == 1
    failure = read_json(folder / "failure.json")
    assert (failure["kind"], failure["attempt"]) == (EXCEPTIONS[how], 1)
    assert failure["message"]
    assert failure["hint"] or how == "configuration"


@pytest.mark.slow
def test_a_module_that_is_not_there(workspace: Workspace) -> None:
    job = until_state(workspace, start(workspace, "no_such_worker"), "failed", "finished")
    assert job.failure is not None
    assert job.failure["kind"] == "bug"
    assert "no_such_worker" in job.failure["message"]


def test_the_workers_own_word_counts_first() -> None:
    said = {"kind": "data", "message": "bad line", "hint": "mend it", "attempt": 1}
    failure = classify(-9, said, ["CUDA out of memory"])
    assert (failure["kind"], failure["message"], failure["hint"]) == ("data", "bad line", "mend it")


@pytest.mark.parametrize(
    "line", ["subprocess.CalledProcessError: Command died with <Signals.SIGKILL: 9>.", "Signal 9 (SIGKILL) received"]
)
def test_a_kill_that_only_the_launcher_saw_is_one_all_the_same(line: str) -> None:
    tail = ["Connection reset by peer", line]
    for failure in (classify(1, None, tail), classify(-9, None, [])):
        assert failure["kind"] == "killed"
        assert "for lack of memory" in failure["message"]
        assert "batch_size" in failure["hint"]


def test_a_polite_signal_from_outside_is_no_fault_of_the_program() -> None:
    failure = classify(-15, None, [])
    assert failure["kind"] == "killed"
    assert "SIGTERM" in failure["message"]


def test_a_silent_end_has_a_message_all_the_same() -> None:
    failure = classify(7, None, [])
    assert "exit code 7" in failure["message"]


def test_a_progress_bar_is_reduced_to_its_last_state(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"start\n" + b"".join(b"\r%d%%" % n for n in range(101)) + b"\nend\n\n")
    assert log_tail(path) == ["start", "100%", "end"]


def test_causes_are_followed() -> None:
    error = RuntimeError("could not save")
    error.__cause__ = OSError(28, "No space left on device")
    assert failure_of(error)["kind"] == "disk"
