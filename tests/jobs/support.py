"""Starting test workers and waiting for what they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from cdp import jobs
from cdp.base.job_kind import JobKind
from cdp.base.registry import registry
from cdp.base.settings import Config
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json, read_json_or_none, read_jsonl
from tests.support import REPOSITORY

# How long a test waits for something that must happen before it calls it a failure; not a measure of speed.
PATIENCE_S = 60.0


def start(workspace: Workspace, worker: str = "count", name: str = "", **options: Any) -> str:
    """Submit a test worker; keyword arguments of ``submit`` pass through, all others become its configuration."""
    passed = {
        key: options.pop(key) for key in ("launcher", "device", "env_secrets", "grace_s", "divides") if key in options
    }
    return jobs.submit(
        workspace, kind="test", name=name or worker, module=f"tests.jobs.workers.{worker}", config=options, **passed
    )


def declare(monkeypatch: pytest.MonkeyPatch, kind: str, module: str, settings: type[Config]) -> None:
    """Let this module run the jobs of a kind."""

    def main(job: Job) -> None: ...

    main.__module__ = module
    declared = JobKind(kind, kind.capitalize(), "Of a test.", settings, main, makes="figures")
    kinds = registry("job kind")
    assert len(kinds), "loaded before it is changed"
    monkeypatch.setitem(kinds._items, kind, declared)


def run_worker(module: str, folder: Path, seen: Callable[[], int], kill_at: int | None) -> tuple[int, str]:
    """Run a worker; (exit code, output). It is killed once ``seen()`` requests came, and must not end before; or never.

    ``seen`` counts what a server was asked; None lets the worker end.
    """
    worker = subprocess.Popen(
        [sys.executable, "-m", module, str(folder)], cwd=REPOSITORY, env=dict(os.environ),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    while kill_at is not None and seen() < kill_at and worker.poll() is None:
        time.sleep(0.003)
    if kill_at is not None:
        assert worker.poll() is None
        worker.send_signal(signal.SIGKILL)
    output, _ = worker.communicate(timeout=300)
    return worker.returncode, output


def until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Wait until ``condition()`` is true and return it; AssertionError that names ``what`` if it never is."""
    deadline = time.monotonic() + patience_s
    pause_s = 0.01
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(pause_s)
        pause_s = min(1.2 * pause_s, 0.1)  # to look at a job costs the processor more than many of the workers do
    raise AssertionError(f"waited {patience_s:g} s in vain for: {what}")


def lives(pid: int) -> bool:
    """Whether this process still runs. One that has ended and that nobody has asked about (a zombie) does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def state(workspace: Workspace, job_id: str) -> str:
    return str(jobs.view(workspace, job_id, with_size=False).state)


def until_state(workspace: Workspace, job_id: str, *wanted: str, patience_s: float = PATIENCE_S) -> jobs.JobView:
    """Wait until the job is in one of these states and return its view."""
    seen: list[str] = []

    def reached() -> jobs.JobView | None:
        job = jobs.view(workspace, job_id, with_size=False)
        if not seen or seen[-1] != job.state:
            seen.append(str(job.state))
        return job if job.state in wanted else None

    try:
        return until(reached, f"{job_id} to be {' or '.join(wanted)}", patience_s)
    except AssertionError as error:
        raise AssertionError(
            f"{error} (was: {', '.join(seen)}; {jobs.follow_log(workspace, job_id)[0][-2000:]})"
        ) from None


def saved_step(workspace: Workspace, job_id: str) -> int:
    """The step of the counting worker's checkpoint; 0 before the first."""
    return int((read_json_or_none(workspace.job(job_id) / "checkpoints" / "last.json") or {}).get("step", 0))


def until_step(workspace: Workspace, job_id: str, step: int) -> None:
    """Wait until the counting worker has saved so many steps."""
    until(lambda: saved_step(workspace, job_id) >= step, f"{job_id} to reach step {step}")


def status(workspace: Workspace, job_id: str) -> dict[str, Any]:
    return read_json(workspace.job(job_id) / "status.json")


def logged(workspace: Workspace, job_id: str) -> list[dict[str, Any]]:
    """What the worker logged, each step once: those beyond the checkpoint that a later start went back to left out."""
    records: list[dict[str, Any]] = []
    for record in read_jsonl(workspace.job(job_id) / "metrics.jsonl"):
        run = record["attempt"], record.get("start", 0)
        while (
            records
            and (records[-1]["attempt"], records[-1].get("start", 0)) < run
            and records[-1]["step"] >= record["step"]
        ):
            records.pop()
        records.append(record)
    return records
