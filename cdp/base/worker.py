"""What a worker process says about itself while it runs, and how it hears that it should stop.

A worker is a module started as ``python -m <module> <job folder>`` (or by ``accelerate launch``). It reads
``spec.json``, works, and tells the world only through files in the job's folder:

``heartbeat.json``   atomic: phase, done, total, unit, message, rate, eta_s, time, clock, next_within_s, memory
``metrics.jsonl``    append-only: one line per logged step
``failures.jsonl``   append-only: each item that failed while the work went on, see ``cdp.base.failures``
``results/*.json``   atomic: what came out
``outcome.json``     atomic, last of all: finished, or stopped before its end because it was asked to
``failure.json``     atomic: kind, message, hint, where it failed
``worker.lock``      held by rank 0 for its life: whoever resumes the job can tell that the worker is gone

``run`` is the frame around a worker's ``main(job)``: it maps CdpError to exit code 1 and a failure file, anything
else to a failure of kind "bug" (or memory, disk …) with the traceback in the log. Every record of an attempt carries
its number, so that what an earlier attempt left behind is never taken for news.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol

from cdp.base.errors import CdpError, WorkspaceError
from cdp.base.failures import FILE, Failures, failure_of, lost
from cdp.base.locks import is_held, wait_for_lock
from cdp.base.workspace import Workspace, append_jsonl, now, read_json, read_json_or_none, read_jsonl, write_json

# Seconds between heartbeats while work goes on.
HEARTBEAT_EVERY_S = 1.0

# A heartbeat promises the next one within this time unless the worker announces a longer silence.
SILENT_FOR_S = 30.0

# What the first heartbeat promises: loading a model on a busy machine takes its time.
START_FOR_S = 300.0

ORPHAN_CHECK_EVERY_S = 1.0


class Spread(Protocol):
    """Several processes that make the files of a job. ``gpus`` is how many GPUs each of them has."""

    @property
    def gpus(self) -> float: ...

    def map(
        self,
        task: Callable[..., object],
        files: Iterable[tuple[Path, tuple[Any, ...]]],
        should_stop: Callable[[], bool],
    ) -> Iterator[Path]:
        """Yield each file once it is there: those that exist at once, the others as ``task(path, *arguments)`` ends.

        ``task`` is a function of a module that writes the file by rename; an error of a task is raised here. Ends early
        once ``should_stop`` says so: files that are there stay.
        """
        ...


class Job:
    """A worker's own view of its job. Only rank 0 writes; on the other ranks every report is ignored."""

    # Set by ``cdp.jobs.ray`` on a cluster for a job that was submitted with ``spreads``; None: work in this process.
    spread: ClassVar[Spread | None] = None

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
        self._promised = 0.0
        self._stop = threading.Event()
        self._heard_stop = False
        self.n_failures = sum(1 for _ in lost(read_jsonl(folder / FILE))) if self.is_main else 0
        self._supervised = bool(os.environ.get("CDP_SUPERVISOR_PID"))

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
        """Say how far the current phase is. Cheap: written at most once a second, at once when the phase changes.

        Before anything that takes longer than half a minute without a word, announce it with ``next_within_s``:
        a heartbeat later than promised makes the job "stalled" on screen.
        """
        if not self.is_main:
            return
        changed = phase != self._state["phase"]
        if changed:
            self._phase_began, self._phase_done0 = time.monotonic(), done
        self._state = {"phase": phase, "done": done, "total": total, "unit": unit, "message": message}
        finished = total > 0 and done >= total
        due = time.monotonic() - self._written >= HEARTBEAT_EVERY_S
        if changed or finished or due or next_within_s > self._promised:
            self._write_heartbeat(next_within_s)

    def _write_heartbeat(self, next_within_s: float) -> None:
        elapsed = time.monotonic() - self._phase_began
        done = self._state["done"] - self._phase_done0
        rate = done / elapsed if elapsed > 0 and done > 0 else None
        left = self._state["total"] - self._state["done"]
        eta = left / rate if rate and left >= 0 else None
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
            **memory_in_use(),
        }
        try:
            write_json(self.folder / "heartbeat.json", heartbeat)
        except WorkspaceError as error:
            # A heartbeat is only news: a full disk may be free again before anything that matters is written.
            print(f"warning: {error}", file=sys.stderr, flush=True)

    def failures(self, stage: str, *, unit: str = "document", path: Path | None = None, keep: bool = False) -> Failures:
        """The items that fail while ``stage`` is done: listed in the job's ``failures.jsonl``, or in ``path``.

        Their number stands in the heartbeat and in the outcome. Only rank 0 writes.
        """
        where = (path or self.folder / FILE) if self.is_main else None
        return Failures(where, stage, unit=unit, keep=keep, on_change=self._count if path is None else self._count_new)

    def settle(self) -> None:
        """A last heartbeat where items failed, so that their number stands there when the worker is gone."""
        if self.is_main and self.n_failures:
            self._write_heartbeat(SILENT_FOR_S)

    def _count(self, n: int) -> None:
        self.n_failures += n

    def _count_new(self, n: int) -> None:
        """What is dropped from another file than the job's own was not counted here."""
        self.n_failures += max(0, n)

    def metric(self, step: int, **values: float | int | str | None) -> None:
        """Append one line to ``metrics.jsonl``: what the live charts show."""
        if self.is_main:
            again = {"start": int(start)} if (start := os.environ.get(START_VARIABLE)) else {}
            record = {"step": step, "time": now(), "attempt": self.attempt, **again, **values}
            append_jsonl(self.folder / "metrics.jsonl", [record])

    def result(self, name: str, value: dict[str, Any]) -> None:
        """Write ``results/<name>.json``."""
        if self.is_main:
            write_json(self.results / f"{name}.json", value)

    def stop_requested(self) -> bool:
        """True once someone asked for a stop (SIGTERM, the request file, or the supervisor gone).

        Ask between steps, and on True save a checkpoint and return from ``main``: the job then counts as stopped, not
        as finished. On several ranks each may hear of it at another step, so agree on one before leaving the loop.
        """
        if self._stop.is_set() or (self.folder / "stop.request").exists():
            self._heard_stop = True
        return self._heard_stop

    def ask_to_stop(self) -> None:
        """What a signal to this process means."""
        self._stop.set()

    def _hold_lock(self) -> int | None:
        """Take ``worker.lock`` on rank 0; closing the descriptor, or the end of the process, gives it back."""
        if not self.is_main:
            return None
        return wait_for_lock(self.folder / "worker.lock", "The job's folder", wait_s=5.0)

    def watch_supervisor(self) -> None:
        """Without its supervisor nobody would see the worker end: it takes that as a request to stop.

        One that does not manage to stop within the grace period ends itself, with all its processes, by force: there
        is nobody left to do it, and a hung worker would keep its GPU for ever.
        """
        if not self._supervised:
            return

        def watch() -> None:
            while supervisor_alive(self.folder):
                time.sleep(ORPHAN_CHECK_EVERY_S)
            print("The supervisor is gone: stopping after the current step.", flush=True)
            self._stop.set()
            time.sleep(stop_grace_s())
            print("The worker did not stop in time: it ends by force.", flush=True)
            if on_a_node():  # where the group is that of Ray's own processes
                os.kill(os.getpid(), signal.SIGKILL)
            os.killpg(os.getpgrp(), signal.SIGKILL)

        threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()

    def _record(self, name: str, content: dict[str, Any]) -> None:
        """Write ``outcome.json`` or ``failure.json``."""
        write_json(self.folder / name, {**content, "time": now(), "attempt": self.attempt})


def stop_grace_s() -> float:
    """Seconds between the request to stop and the kill."""
    return float(os.environ.get("CDP_STOP_GRACE_S", "30"))


# Set by ``cdp.jobs.ray`` on a cluster: the version that started the job; that a training has processes on several
# nodes, where one that lost another reports no failure; how often the worker was started before in its attempt.
NODE_VARIABLE, GROUP_VARIABLE, START_VARIABLE = "CDP_NODE", "CDP_GROUP", "CDP_START"


def on_a_node() -> bool:
    """Return whether this worker runs on a cluster: others may use the workspace on other machines."""
    return NODE_VARIABLE in os.environ


def supervisor_alive(job_folder: Path) -> bool:
    """Return whether some process holds ``alive.lock``: the one test of liveness, safe against reused pids."""
    return is_held(job_folder / "alive.lock")


def memory_in_use() -> dict[str, int]:
    """host_memory and gpu_memory of this process in bytes; of GPUs where torch is loaded."""
    import psutil

    values = {"host_memory": psutil.Process().memory_info().rss}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        values["gpu_memory"] = sum(torch.cuda.memory_reserved(i) for i in range(torch.cuda.device_count()))
    return values


def run(main: Callable[[Job], None], argv: list[str] | None = None) -> None:
    """The frame of every worker: ``if __name__ == "__main__": worker.run(main)``. Ends the process."""
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        print("usage: python -m <worker module> <job folder>", file=sys.stderr)
        raise SystemExit(2)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    job = Job(Path(arguments[0]).resolve())
    if threading.current_thread() is threading.main_thread():  # Ray Train has that one
        signal.signal(signal.SIGTERM, lambda *_: job.ask_to_stop())
    lock: int | None = None
    try:
        lock = job._hold_lock()
        if job._supervised and not supervisor_alive(job.folder):
            print("The supervisor is gone: nothing is begun.", file=sys.stderr, flush=True)
            raise SystemExit(1)
        job.watch_supervisor()
        job.progress("starting", 0, 0, "", next_within_s=START_FOR_S)
        main(job)
        if job.is_main:
            job.settle()
            outcome = "stopped" if job._heard_stop else "finished"
            job._record("outcome.json", {"outcome": outcome, "failures": job.n_failures})
    except Exception as error:
        alone = os.environ.get(GROUP_VARIABLE) and lost_another(error)
        # Recorded before it is printed: on a full disk the log may take no line.
        job.settle()
        if not alone:
            report_failure(job, error)
        with suppress(OSError):
            if alone:
                print(f"Another process of the group is gone: {str(error)[:300]}", file=sys.stderr)
            elif isinstance(error, CdpError):
                print(error, file=sys.stderr)
            # Where a library was cut off by a full disk explains nothing.
            elif (failure := failure_of(error, f"a file in {job.folder}"))["kind"] == "disk":
                print(f"{failure['message']} {failure['hint']}", file=sys.stderr)
            else:
                traceback.print_exc()
            sys.stderr.flush()
        raise SystemExit(1) from None
    finally:
        if lock is not None:
            os.close(lock)


def lost_another(error: BaseException) -> bool:
    """Whether it was raised by what processes talk to each other with: then another one is gone."""
    step = error.__traceback__
    while step is not None:
        if str(step.tb_frame.f_globals.get("__name__", "")).startswith("torch.distributed"):
            return True
        step = step.tb_next
    return False


def report_failure(job: Job, error: Exception) -> None:
    """Write ``failure.json``. Any rank may, but the first word counts: the others only lost their partner."""
    earlier = read_json_or_none(job.folder / "failure.json")
    if isinstance(earlier, dict) and earlier.get("attempt") == job.attempt:
        return
    try:
        job._record("failure.json", dict(failure_of(error, f"a file in {job.folder}")))
    except (OSError, WorkspaceError) as problem:
        print(f"failure.json could not be written: {problem}", file=sys.stderr, flush=True)
