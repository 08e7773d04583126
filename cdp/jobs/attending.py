"""One attempt of a worker, attended from its start until no process of it is left, on whatever machine it runs."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cdp.base.workspace import read_json_or_none
from cdp.jobs import processes
from cdp.jobs.launchers import command, environment, is_launched, starting_folder
from cdp.jobs.spec import JobSpec

POLL_S = 0.1
"""Seconds between looks at the worker and at the stop request."""

LEAVE_WITHIN_S = 60.0
"""How long processes may linger after the worker has said that it is done (a hung communication library)."""


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ended: the worker's exit code (negative: a signal), whether a stop had to be forced, and whether
    the kernel killed processes for lack of memory meanwhile."""

    code: int
    forced: bool = False
    killed_for_memory: bool = False


class Attendant:
    """Starts the worker of one attempt and sees it to its end.

    ``stop_requested`` and ``stop_now`` tell whether somebody wants it to stop, and to be killed. The process that
    attends has to have adopted orphans (``processes.adopt_orphans``).
    """

    def __init__(
        self,
        folder: Path,
        spec: JobSpec,
        attempt: int,
        *,
        stop_requested: Callable[[], bool],
        stop_now: Callable[[], bool],
    ) -> None:
        self.folder, self.spec, self.attempt = folder, spec, attempt
        self.stop_requested, self.stop_now = stop_requested, stop_now

    def start(self, devices: tuple[str, ...], inherited: Mapping[str, str]) -> int:
        """Start the worker, its output at the end of ``worker.log``; its pid."""
        self._kills_before = processes.memory_kills()
        with open(self.folder / "worker.log", "ab") as log:
            if self.attempt > 1:
                log.write(f"\n--- attempt {self.attempt} ---\n".encode())
                log.flush()
            self._worker = subprocess.Popen(
                command(self.spec, self.folder, devices),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=starting_folder(self.spec, self.folder),
                env=environment(self.spec, devices, self.attempt, inherited),
                process_group=0,
            )
        self._launched = is_launched(self.spec, devices)
        return self._worker.pid

    def watch(self) -> End:
        """Wait until no process of the worker is left."""
        worker = self._worker
        code: int | None = None
        deadline: float | None = None
        forced = stopping = False
        while True:
            ended = processes.reap()
            if worker.pid in ended:
                code = worker.returncode = ended[worker.pid]
            left = processes.descendants() if code is not None or deadline is not None else [worker.pid]
            if code is not None and not left:
                return End(code, forced, processes.memory_kills() > self._kills_before)
            moment = time.monotonic()
            if not stopping and self.stop_requested():
                stopping, deadline = True, moment + self.spec.grace_s
                self._ask_to_stop(worker.pid)
            if deadline is None and (code is not None or self._outcome() is not None):
                deadline = moment + (LEAVE_WITHIN_S if code is None else min(self.spec.grace_s, 10.0))
                if code is not None:
                    processes.send(left, signal.SIGTERM)
            if deadline is not None and (moment >= deadline or self.stop_now()):
                forced = forced or (stopping and self._outcome() is None)
                processes.send(left, signal.SIGKILL)
            time.sleep(POLL_S)

    def _ask_to_stop(self, pid: int) -> None:
        """SIGTERM to the workers themselves. Launchers are spared: they would kill what is busy saving."""
        targets = processes.children_of(pid) if self._launched else [pid]
        processes.send(targets, signal.SIGTERM)

    def _outcome(self) -> str | None:
        return outcome_of(self.folder, self.attempt)


def outcome_of(folder: Path, attempt: int) -> str | None:
    """What the worker of this attempt says of its end: finished, stopped, or None."""
    record = read_json_or_none(folder / "outcome.json")
    if isinstance(record, dict) and record.get("attempt") == attempt:
        return str(record.get("outcome"))
    return None
