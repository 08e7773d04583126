"""A worker's side of its job: heartbeat, metrics, failures, results, outcome, stop request, lost supervisor, exit.

A worker is a module started as ``python -m <module> <job folder>`` (or by a launcher). It reads
``spec.json`` and reports through files in the job's folder:

``heartbeat.json``   atomic: phase, done, total, unit, message, rate, eta_s, time, clock, next_within_s
``metrics.jsonl``    append-only: one line per logged step
``failures.jsonl``   append-only: each failed item, see ``cdp.base.failures``
``results/*.json``   atomic: the results
``outcome.json``     atomic, last of all: finished, or stopped on request
``failure.json``     atomic: kind, message, hint
``worker.lock``      held by rank 0 for its life

``run`` wraps a worker's ``main(job)``: a CdpError gives exit code 1 and a failure file, any other error a failure of
kind "bug" (or memory, disk …) with the traceback in the log. Every record has the number of its attempt.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol

from cdp.base.errors import CdpError, ConfigError, WorkspaceError
from cdp.base.failures import FILE, LINE, RETRY, Failures, failure_of, lost
from cdp.base.locks import is_held, wait_for_lock
from cdp.base.records import checked, fields, lines
from cdp.base.redaction import cleaned_output
from cdp.base.workspace import Workspace, append_jsonl, now, read_json, read_json_or_none, write_json

HEARTBEAT_EVERY_S = 1.0
# A heartbeat promises the next one within this time unless the worker announces a longer silence.
SILENT_FOR_S = 30.0
START_FOR_S = 300.0  # the first one's promise: loading a model on a busy machine is slow
BATCH_FOR_S = 300.0  # one call of an encoder, a search, a shard
LOADING_FOR_S = 600.0  # a model may be downloaded on first use
ORPHAN_CHECK_EVERY_S = 1.0
LONGEST_GRACE_S = 86_400.0
# Set by ``cdp.jobs.ray`` on a cluster: the version that started the job; that a training has processes on several
# nodes, where a process that lost its peer reports no failure; how often the worker was restarted in its attempt.
NODE_VARIABLE, GROUP_VARIABLE, START_VARIABLE = "CDP_NODE", "CDP_GROUP", "CDP_START"


# Of ``spec.json``, what every worker needs.
_SPEC = fields({"id": str, "config": dict[str, Any]}, name=str, inputs=dict[str, Any])


class Stopped(Exception):  # noqa: N818 - it answers a request, it is no error
    """The job was asked to stop; finished work is kept. ``run`` then ends it as stopped."""


class WorkerPool(Protocol):
    """A worker pool that writes the files of a job. ``gpus`` is the number of GPUs of each process."""

    @property
    def gpus(self) -> float: ...

    def map(
        self,
        task: Callable[..., object],
        files: Iterable[tuple[Path, tuple[Any, ...]]],
        should_stop: Callable[[], bool],
    ) -> Iterator[Path]:
        """Yield each file once it exists: existing ones first, the others as ``task(path, *arguments)`` ends.

        ``task`` is a module's function that writes the file by rename; its errors are raised here. Ends early once
        ``should_stop`` returns True.
        """
        ...


class Job:
    """A worker's view of its job. Only rank 0 writes; reports of other ranks are ignored."""

    # Set by ``cdp.jobs.ray`` on a cluster for a job submitted with ``uses_pool``; None: work in this process.
    pool: ClassVar[WorkerPool | None] = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / "spec.json"
        self.spec: dict[str, Any] = checked(_SPEC, read_json(path), path)
        self.id: str = self.spec["id"]
        self.config: dict[str, Any] = self.spec["config"]
        self.workspace = Workspace(folder.parent.parent)
        self.results = folder / "results"
        self.attempt = int(os.environ.get("CDP_ATTEMPT", "1"))  # more than 1 after a resume
        self.is_main = int(os.environ.get("RANK", "0")) == 0
        self._state: dict[str, Any] = {"phase": "starting", "done": 0, "total": 0, "unit": "", "message": ""}
        self._phase_began = time.monotonic()
        self._phase_done0 = 0
        self._left_s: float | None = None
        self._written = 0.0
        self._promised = 0.0
        self._stop = threading.Event()
        self._heard_stop = False
        self.n_failures = sum(1 for _ in lost(lines(LINE, folder / FILE))) if self.is_main else 0
        self._supervised = bool(os.environ.get("CDP_SUPERVISOR_PID"))
        named = read_json_or_none(folder / RETRY)
        self._retried = frozenset(map(str, named)) if isinstance(named, list) else frozenset()

    def progress(
        self, phase: str, done: int, total: int, unit: str, message: str = "", *, next_within_s: float = SILENT_FOR_S,
        left_s: float | None = None,
    ) -> None:  # fmt: skip
        """Report the progress of the current phase; written at most once a second, and when the phase changes.

        Announce silences of more than half a minute with ``next_within_s``: a late heartbeat makes the job "stalled".
        ``left_s`` is the remaining time where the units are not alike; else it follows from their rate.
        """
        if not self.is_main:
            return

        changed = phase != self._state["phase"]
        if changed:
            self._phase_began, self._phase_done0 = time.monotonic(), done

        self._state = {"phase": phase, "done": done, "total": total, "unit": unit, "message": message}
        self._left_s = left_s

        finished = total > 0 and done >= total
        due = time.monotonic() - self._written >= HEARTBEAT_EVERY_S
        if changed or finished or due or next_within_s > self._promised:
            self._write_heartbeat(next_within_s)

    def advance(self, phase: str, done: int, total: int, unit: str = "texts", message: str = "") -> None:
        """Report progress between batches that may take minutes. Raises Stopped after a request to stop."""
        if self.stop_requested():
            raise Stopped
        self.progress(phase, done, total, unit, message, next_within_s=BATCH_FOR_S)

    def loading(self, what: str) -> None:
        """Announce a model that may take minutes to load."""
        self.progress(f"loading {what}", 0, 0, "", next_within_s=LOADING_FOR_S)

    def _write_heartbeat(self, next_within_s: float) -> None:
        elapsed = time.monotonic() - self._phase_began
        done = self._state["done"] - self._phase_done0
        rate = done / elapsed if elapsed > 0 and done > 0 else None
        left = self._state["total"] - self._state["done"]
        eta = self._left_s if self._left_s is not None else left / rate if rate and left >= 0 else None
        self._written, self._promised = time.monotonic(), next_within_s
        heartbeat = {
            **self._state,
            "rate": rate,
            "eta_s": eta,
            "time": now(),
            "clock": time.time(),
            "next_within_s": next_within_s,
            "attempt": self.attempt,
            "failures": self.n_failures,
            "pid": os.getpid(),
        }

        try:
            write_json(self.folder / "heartbeat.json", heartbeat)
        except WorkspaceError as error:
            # A full disk may have space again before results are written.
            print(f"warning: {error}", file=sys.stderr, flush=True)

    def failures(self, stage: str, *, unit: str = "document", path: Path | None = None, keep: bool = False) -> Failures:
        """Return the failures of a stage, listed in the job's ``failures.jsonl``, or in ``path``.

        Their number is part of the heartbeat and the outcome.
        """

        def count(n: int) -> None:
            # Lines dropped from another file than the job's own were not counted here.
            self.n_failures += n if path is None else max(0, n)

        where = (path or self.folder / FILE) if self.is_main else None
        return Failures(where, stage, unit=unit, keep=keep, only=self._retried, on_change=count)

    def takes(self, item_id: str) -> bool:
        """Return False for an item that this attempt leaves alone: a retry of others."""
        return not self._retried or item_id in self._retried

    def settle(self) -> None:
        """Write a last heartbeat if items failed, with their number."""
        if self.is_main and self.n_failures:
            self._write_heartbeat(SILENT_FOR_S)

    def metric(self, step: int, **values: float | int | str | None) -> None:
        """Append one line to ``metrics.jsonl``, for the live charts."""
        if self.is_main:
            again = {"start": int(start)} if (start := os.environ.get(START_VARIABLE)) else {}
            record = {"step": step, "time": now(), "attempt": self.attempt, **again, **values}
            append_jsonl(self.folder / "metrics.jsonl", [record])

    def result(self, name: str, value: dict[str, Any]) -> None:
        """Write ``results/<name>.json``."""
        if self.is_main:
            write_json(self.results / f"{name}.json", value)

    def stop_requested(self) -> bool:
        """Return True after a request to stop (SIGTERM, the request file, or a lost supervisor).

        Call it between steps; on True save a checkpoint, then return from ``main`` or raise Stopped. Ranks may see the
        request at different steps, so agree on one before leaving the loop.
        """
        if self._stop.is_set() or (self.folder / "stop.request").exists():
            self._heard_stop = True
        return self._heard_stop

    def watch_supervisor(self) -> None:
        """Stop if the supervisor dies; after the grace period kill this worker with all its processes."""
        # A hung worker without a supervisor would keep its GPU for ever.
        if not self._supervised:
            return

        def watch() -> None:
            while supervisor_alive(self.folder):
                time.sleep(ORPHAN_CHECK_EVERY_S)
            print("The supervisor was lost: stopping after the current step.", flush=True)
            self._stop.set()
            time.sleep(stop_grace_s())
            print("The worker did not stop in time and kills itself.", flush=True)
            if on_a_node():  # the group is that of Ray's own processes
                os.kill(os.getpid(), signal.SIGKILL)
            os.killpg(os.getpgrp(), signal.SIGKILL)

        threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()

    def _record(self, name: str, content: Mapping[str, Any]) -> None:
        """Write ``outcome.json`` or ``failure.json``."""
        write_json(self.folder / name, {**content, "time": now(), "attempt": self.attempt})


def stop_grace_s() -> float:
    """Return the seconds between the request to stop and the kill. Raises ConfigError."""
    text = os.environ.get("CDP_STOP_GRACE_S", "").strip() or "30"
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise ConfigError(f"CDP_STOP_GRACE_S must be a number of seconds, not {text!r}.")
    return min(max(0.0, seconds), LONGEST_GRACE_S)


def on_a_node() -> bool:
    """Return True if this worker runs on a cluster: other machines may use the workspace."""
    return NODE_VARIABLE in os.environ


def supervisor_alive(job_folder: Path) -> bool:
    """Return True if some process holds ``alive.lock``: the one test of liveness, safe against reused pids."""
    return is_held(job_folder / "alive.lock")


@cleaned_output()
def run(main: Callable[[Job], None], argv: list[str] | None = None) -> None:
    """Run a worker: ``if __name__ == "__main__": worker.run(main)``. Ends the process."""
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        print("usage: python -m <worker module> <job folder>", file=sys.stderr)
        raise SystemExit(2)

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    job = Job(Path(arguments[0]).resolve())

    if threading.current_thread() is threading.main_thread():  # Ray Train has that one
        signal.signal(signal.SIGTERM, lambda *_: job._stop.set())

    lock: int | None = None

    try:
        if job.is_main:
            lock = wait_for_lock(job.folder / "worker.lock", "The job's folder", wait_s=5.0)

        if job._supervised and not supervisor_alive(job.folder):
            print("The supervisor was lost: nothing is started.", file=sys.stderr, flush=True)
            raise SystemExit(1)

        job.watch_supervisor()
        job.progress("starting", 0, 0, "", next_within_s=START_FOR_S)

        try:
            main(job)
        except Stopped:
            print("Stopped on request; finished work is kept.", flush=True)

        if job.is_main:
            job.settle()
            outcome = "stopped" if job._heard_stop else "finished"
            job._record("outcome.json", {"outcome": outcome, "failures": job.n_failures})
    except Exception as error:
        peer_lost = os.environ.get(GROUP_VARIABLE) and is_peer_failure(error)
        # Recorded before it is printed: on a full disk the log may take no line.
        job.settle()
        if not peer_lost:
            report_failure(job, error)

        with suppress(OSError):
            if peer_lost:
                print(f"Another process of the group was lost: {str(error)[:300]}", file=sys.stderr)
            elif isinstance(error, CdpError):
                print(error, file=sys.stderr)
            # A traceback into a library does not explain a full disk.
            elif (failure := failure_of(error, f"a file in {job.folder}"))["kind"] == "disk":
                print(f"{failure['message']} {failure['hint']}", file=sys.stderr)
            else:
                traceback.print_exc()

            sys.stderr.flush()

        raise SystemExit(1) from None
    finally:
        if lock is not None:
            os.close(lock)


def is_peer_failure(error: BaseException) -> bool:
    """Return True if the error was raised by communication between ranks: then another rank was lost."""
    step = error.__traceback__
    while step is not None:
        if str(step.tb_frame.f_globals.get("__name__", "")).startswith("torch.distributed"):
            return True
        step = step.tb_next
    return False


def report_failure(job: Job, error: Exception) -> None:
    """Write ``failure.json``, from any rank. The first counts: the others only lost their peer."""
    earlier = read_json_or_none(job.folder / "failure.json")
    if isinstance(earlier, dict) and earlier.get("attempt") == job.attempt:
        return
    try:
        job._record("failure.json", failure_of(error, f"a file in {job.folder}"))
    except (OSError, WorkspaceError) as problem:
        print(f"failure.json could not be written: {problem}", file=sys.stderr, flush=True)
