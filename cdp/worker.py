"""What a worker process says about itself while it runs, and how it hears that it should stop.

A worker is a module started as ``python -m <module> <job folder>`` (or by ``accelerate launch``). It reads
``spec.json``, works, and tells the world only through files in the job's folder:

``heartbeat.json``   atomic: phase, done, total, unit, message, rate, eta_s, time, next_within_s
``metrics.jsonl``    append-only: one line per logged step
``results/*.json``   atomic: what came out
``failure.json``     atomic: kind, message, hint, where it stopped on purpose

``run`` is the frame around a worker's ``main(job)``: it maps CdpError to exit code 1 and a failure file, anything
else to a failure of kind "bug" (or memory, disk …) with the traceback in the log.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cdp.errors import CdpError, WorkspaceError
from cdp.workspace import Workspace, append_jsonl, now, read_json, read_json_or_none, write_json

HEARTBEAT_EVERY_S = 1.0
"""Seconds between heartbeats while work goes on."""

SILENT_FOR_S = 30.0
"""A heartbeat promises the next one within this time unless the worker announces a longer silence."""

ORPHAN_CHECK_EVERY_S = 1.0


class Job:
    """A worker's own view of its job. Only rank 0 writes; on the other ranks every report is ignored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spec: dict[str, Any] = read_json(folder / "spec.json")
        self.id: str = self.spec["id"]
        self.config: dict[str, Any] = self.spec["config"]
        self.workspace = Workspace(folder.parent.parent)
        self.is_main = int(os.environ.get("RANK", "0")) == 0
        self._state: dict[str, Any] = {"phase": "starting", "done": 0, "total": 0, "unit": "", "message": ""}
        self._phase_began = time.monotonic()
        self._phase_done0 = 0
        self._written = 0.0
        self._stop = threading.Event()
        self._supervisor = os.environ.get("CDP_SUPERVISOR_PID", "")

    @property
    def attempt(self) -> int:
        """1 for the first attempt; more after a resume."""
        return int(os.environ.get("CDP_ATTEMPT", "1"))

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def progress(
        self, phase: str, done: int, total: int, unit: str, message: str = "", *, next_within_s: float = SILENT_FOR_S
    ) -> None:
        """Say how far the current phase is. Cheap: written at most once a second, at once when the phase changes."""
        if not self.is_main:
            return
        changed = phase != self._state["phase"]
        if changed:
            self._phase_began, self._phase_done0 = time.monotonic(), done
        self._state = {"phase": phase, "done": done, "total": total, "unit": unit, "message": message}
        finished = total > 0 and done >= total
        if changed or finished or time.monotonic() - self._written >= HEARTBEAT_EVERY_S:
            self._write_heartbeat(next_within_s)

    def _write_heartbeat(self, next_within_s: float) -> None:
        elapsed = time.monotonic() - self._phase_began
        made = self._state["done"] - self._phase_done0
        rate = made / elapsed if elapsed > 0 and made > 0 else None
        left = self._state["total"] - self._state["done"]
        eta = left / rate if rate and left >= 0 else None
        self._written = time.monotonic()
        write_json(
            self.folder / "heartbeat.json",
            {
                **self._state,
                "rate": rate,
                "eta_s": eta,
                "time": now(),
                "next_within_s": next_within_s,
                "attempt": self.attempt,
                "pid": os.getpid(),
            },
        )

    def metric(self, step: int, **values: float | int | str | None) -> None:
        """Append one line to ``metrics.jsonl``: what the live charts show."""
        if self.is_main:
            append_jsonl(
                self.folder / "metrics.jsonl", [{"step": step, "time": now(), "attempt": self.attempt, **values}]
            )

    def result(self, name: str, value: dict[str, Any]) -> None:
        """Write ``results/<name>.json``."""
        if self.is_main:
            write_json(self.results / f"{name}.json", value)

    def stop_requested(self) -> bool:
        """True once someone asked for a stop (SIGTERM, the request file, or the supervisor gone)."""
        return self._stop.is_set() or (self.folder / "stop.request").exists()

    def _watch_supervisor(self) -> None:
        """Without its supervisor nobody would see the worker end: it takes that as a request to stop."""
        if not self._supervisor:
            return

        def watch() -> None:
            while not self._stop.wait(ORPHAN_CHECK_EVERY_S):
                if not supervisor_alive(self.folder):
                    print("The supervisor is gone: stopping after the current step.", flush=True)
                    self._stop.set()

        threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()


def supervisor_alive(job_folder: Path) -> bool:
    """Whether some process holds the job's ``alive.lock``: the one test of liveness, safe against reused pids."""
    import fcntl

    try:
        with open(job_folder / "alive.lock") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(file, fcntl.LOCK_UN)
            return False
    except FileNotFoundError:
        return False


def failure_of(error: BaseException) -> dict[str, str]:
    """kind, message and hint for an exception: what ``failure.json`` holds and a page shows."""
    if isinstance(error, CdpError):
        return {"kind": error.kind, "message": error.message, "hint": error.hint}
    name = type(error).__name__
    text = str(error).strip() or name
    if name == "OutOfMemoryError" or "CUDA out of memory" in text:
        return {
            "kind": "cuda_out_of_memory",
            "message": text.splitlines()[0],
            "hint": "Use a smaller batch_size, mini_batch (GradCache), a smaller max_length, or another GPU.",
        }
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return {
            "kind": "host_out_of_memory",
            "message": text.splitlines()[0],
            "hint": "Use a smaller batch_size or fewer documents, or a machine with more memory.",
        }
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return {"kind": "disk", "message": text, "hint": "Free some space on the workspace's disk, then resume."}
    return {
        "kind": "bug",
        "message": f"{name}: {text.splitlines()[0]}",
        "hint": "The log holds the traceback.",
    }


def run(main: Callable[[Job], None], argv: list[str] | None = None) -> None:
    """The frame of every worker: ``if __name__ == "__main__": worker.run(main)``. Ends the process."""
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        print("usage: python -m <worker module> <job folder>", file=sys.stderr)
        raise SystemExit(2)
    job = Job(Path(arguments[0]).resolve())
    signal.signal(signal.SIGTERM, lambda *_: job._stop.set())
    job._watch_supervisor()
    try:
        job.progress("starting", 0, 0, "")
        main(job)
    except Exception as error:
        traceback.print_exc()
        sys.stderr.flush()
        if job.is_main:
            try:
                write_json(job.folder / "failure.json", {**failure_of(error), "time": now(), "attempt": job.attempt})
            except (OSError, WorkspaceError):
                pass
        raise SystemExit(1) from error


def read_heartbeat(job_folder: Path) -> dict[str, Any] | None:
    """The last heartbeat of a job, or None before the first."""
    value = read_json_or_none(job_folder / "heartbeat.json")
    return value if isinstance(value, dict) else None
