"""Breaking things on purpose, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from cdp import jobs
from cdp.base.workspace import Workspace, read_jsonl
from tests.jobs.support import lives, logged, saved_step, status, until, until_state
from tests.support import REPOSITORY

# What is shown of a job must be true this soon after anything happened to it: a second or two, and longer where several
# tests and their workers share two cores.
TRUE_WITHIN_S = 20.0


def app(workspace: Workspace, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Another program on the same workspace, in a session of its own: ``python -m tests.faults.app …``."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.app", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "CDP_WORKSPACE": str(workspace.root), **environment},
        start_new_session=True,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    """The first line that a program prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def kill(pids: Sequence[int]) -> None:
    """kill -9, and wait until none of them runs."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        with suppress(ChildProcessError):  # a child of this process is gone once somebody has asked about it
            os.waitpid(pid, 0)
        until(lambda pid=pid: not lives(pid), f"process {pid} to end")


def kill_whole(process: subprocess.Popen[str]) -> None:
    """kill -9 a program with everything in its session, as when its terminal or container goes."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def supervisor_of(workspace: Workspace, job_id: str) -> int:
    return int(status(workspace, job_id)["supervisor_pid"])


def worker_of(workspace: Workspace, job_id: str) -> int:
    return int(status(workspace, job_id)["worker_pid"])


def resumes_without_loss(workspace: Workspace, job_id: str, steps: int) -> None:
    """Resume a counting job: it must go on exactly where its last checkpoint was and reach the end."""
    saved = saved_step(workspace, job_id)
    attempt = jobs.resume(workspace, job_id)
    job = until_state(workspace, job_id, "finished", "failed", "stopped", "lost")
    assert (job.state, job.attempt, job.done) == ("finished", attempt, steps), job.failure
    last = list(read_jsonl(workspace.job(job_id) / "began.jsonl"))[-1]
    assert (last["attempt"], last["from"]) == (attempt, saved), "it went on from its checkpoint"
    assert [m["step"] for m in logged(workspace, job_id)] == list(range(1, steps + 1)), "each step once"
