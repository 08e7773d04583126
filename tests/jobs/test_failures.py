"""Each way to fail gets its kind, a sentence, a hint and the end of the log."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cdp.base.failures import failure_of
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.jobs.logs import classify, log_tail
from tests.jobs.support import start, status, until_state
from tests.support import work

EXCEPTIONS = {
    "data": ("data", "line 7", "Remove the line"),
    "configuration": ("configuration", "'epochs'", ""),
    "network": ("network", "401", "Check the key"),
    "library network": ("network", "nobody listens", ""),
    "cuda": ("cuda_out_of_memory", "20.00 GiB", "mini_batch"),
    "host memory": ("host_out_of_memory", "", "batch_size"),
    "disk": ("disk", "The disk is full", "resume"),
    "bug": ("bug", "nonsense", ""),
}


@pytest.mark.slow
def test_a_worker_that_ends_without_a_word(workspace: Workspace) -> None:
    """What a worker raises is below, how it is killed in ``tests/faults``."""
    job_id = start(workspace, "fail", how="exit code")
    job = until_state(workspace, job_id, "failed", "finished", "stopped", "lost")
    assert job.state == "failed"
    assert job.failure is not None
    assert job.failure["kind"] == "bug"
    assert "over there" in job.failure["message"]
    assert job.failure["hint"]
    assert "about to fail: exit code" in "\n".join(job.failure["log_tail"])
    assert status(workspace, job_id)["exit_code"] == 3


@pytest.mark.parametrize(
    ("code", "line", "shown"),
    [
        (-signal.SIGSEGV, "about to fail", "Segmentation fault"),
        (1, "python: No module named no_such_worker", "no_such_worker"),
    ],
)
def test_a_crash_and_a_module_that_is_not_there_are_bugs(code: int, line: str, shown: str) -> None:
    failure = classify(code, None, [line])
    assert failure["kind"] == "bug"
    assert shown in failure["message"]
    assert failure["hint"]


@pytest.mark.parametrize("how", EXCEPTIONS)
def test_exceptions_of_workers(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "workspace" / "jobs" / "test-1"
    write_json(folder / "spec.json", {"id": "test-1", "config": {"how": how}})
    assert work("tests.jobs.workers.fail", folder) == 1
    failure = read_json(folder / "failure.json")
    kind, message, hint = EXCEPTIONS[how]
    assert (failure["kind"], failure["attempt"]) == (kind, 1)
    assert message in failure["message"]
    assert failure["message"]
    assert hint in failure["hint"]
    assert failure["hint"] or how == "configuration"


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
