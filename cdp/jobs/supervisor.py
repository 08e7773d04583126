"""One supervisor per job: ``python -m cdp.jobs.supervisor <job folder> [<descriptor of the held lock>]``.

It runs in a session of its own, so that neither a closed browser tab nor the end of the app reaches it. It holds
``alive.lock`` for its life, waits for its turn in the queue, starts the worker, hears stop requests, reaps whatever
the worker leaves, and records how it ended. Its own output goes to ``supervisor.log``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from cdp.base.errors import CdpError, ClusterError, ConfigError, WorkspaceError
from cdp.base.failures import failure_of
from cdp.base.locks import wait_for_lock
from cdp.base.output import survives_a_full_disk
from cdp.base.worker import release_reserve
from cdp.base.workspace import Workspace, private_files, read_json_or_none
from cdp.jobs import lease, processes
from cdp.jobs.alive import VARIABLE
from cdp.jobs.attending import Attendant, End, outcome_of
from cdp.jobs.devices import LIGHT_SLOTS, cpu_slots, list_gpus
from cdp.jobs.failures import classify
from cdp.jobs.logs import log_tail
from cdp.jobs.place import of_workspace
from cdp.jobs.queue import CLUSTER, CLUSTER_SLOTS, CPU, LIGHT, Queue
from cdp.jobs.remote import Remote
from cdp.jobs.spec import JobSpec, read_spec
from cdp.jobs.state import JobFiles, State, derive
from cdp.jobs.status import Status

QUEUE_POLL_S = 0.25
"""Seconds between looks at the queue, while waiting in it."""


class Supervisor:
    """The life of one attempt of one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = Workspace(folder.parent.parent)
        self.spec: JobSpec = read_spec(folder)
        self.status = Status.load(folder)
        self.queue = Queue(self.workspace)
        self.place = self.status.place
        self.device = self.spec.device.at(self.place)
        self.asked_to_end = False

    def run(self) -> None:
        """Queue, run, record. Whatever goes wrong here is recorded as the failure of the job."""
        processes.adopt_orphans()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            devices = self._wait_for_turn()
            if devices is None:
                self.status.ended("stopped", message="It was stopped before it started.")
                return
            self._run_worker(devices)
        except BaseException as error:
            traceback.print_exc()
            processes.send(processes.descendants(), signal.SIGKILL)
            failure = {**failure_of(error), "log_tail": log_tail(self.folder / "supervisor.log")}
            if not isinstance(error, CdpError):
                failure["message"] = f"The supervisor failed: {failure['message']}"
            self.status.ended("failed", failure=failure)
        finally:
            self.queue.remove(self.spec.id)
            release_reserve(self.folder)

    def _on_signal(self, *_: Any) -> None:
        """The machine shuts down, or someone ends the supervisor politely: the same as a request to stop."""
        self.asked_to_end = True

    def _stop_requested(self) -> bool:
        return self.asked_to_end or (self.folder / "stop.request").exists()

    def _wait_for_turn(self) -> tuple[str, ...] | None:
        """The devices that the job may use, once it is its turn; None if it was stopped meanwhile."""
        slots = cpu_slots()
        present = list_gpus() if self.device.lane == "gpu" else []
        if not self.place.address:
            self.spec.device.check(present)
        gpus = [gpu.uuid for gpu in present]
        room = {CPU: slots, LIGHT: LIGHT_SLOTS, CLUSTER: CLUSTER_SLOTS}.get(self.device.lane, max(1, len(gpus)))
        seen, asked = -1, 0.0
        while not self._stop_requested():
            if not self._foundations_laid():
                time.sleep(QUEUE_POLL_S)
                continue
            changed, moment = self.queue.changed(), time.monotonic()
            position = self.queue.positions().get(self.spec.id, 1) if changed != seen or moment - asked > 2.0 else 0
            # Only those near the front need the queue's lock at each change; the rest look now and then, in case
            # that one ahead of them was killed and left its ticket behind.
            if position and (position <= room + 8 or moment - asked > 2.0 + 0.1 * position):
                asked = moment
                devices = self.queue.try_take(self.spec.id, slots=slots, gpus=gpus)
                if devices is not None:
                    return (CPU,) if devices == (LIGHT,) else devices
            seen = changed
            time.sleep(QUEUE_POLL_S)
        return None

    def _foundations_laid(self) -> bool:
        """Whether the jobs that this one builds on have all ended; ConfigError once one of them did not end well.

        A stopped job is as good as a finished one: what it had is saved.
        """
        for job_id in self.spec.after:
            if self.queue.pending(job_id):
                return False
            ended = derive(JobFiles.read(self.workspace.job(job_id)), False, time.monotonic()).state
            if ended not in (State.FINISHED, State.STOPPED):
                how = "failed" if ended is State.FAILED else "was cut off or deleted"
                raise ConfigError(
                    f"It builds on the job {job_id}, which {how}.", hint="Resume that job, then this one."
                )
        return True

    def _run_worker(self, devices: tuple[str, ...]) -> None:
        self._take_what_is_left()
        if self.place.address:
            with Remote(self.folder, self.spec, self.status, self.place) as remote:
                end = remote.run(self._stop_requested, self._stop_now)
        else:
            attendant = Attendant(
                self.folder,
                self.spec,
                self.status.attempt,
                stop_requested=self._stop_requested,
                stop_now=self._stop_now,
            )
            patience_s = self.spec.grace_s + 60.0
            lease.wait_until_over(self.folder, self.status.attempt, self._stop_requested, patience_s)
            worker = attendant.start(devices, os.environ)
            self.status.running(supervisor_pid=os.getpid(), worker_pid=worker, devices=devices)
            end = attendant.watch()
        if end is None:
            self.status.ended("stopped", message="It was stopped before it started.")
        else:
            self._record_end(end)

    def _take_what_is_left(self) -> None:
        """What the node of the attempt before has left in the workspace's store, while nobody took it."""
        store = of_workspace(self.workspace).store
        if not store or self.status.attempt == 1:
            return
        from cdp.jobs.store import here

        try:
            here.catch_up(self.folder, self.spec, store, self.status.attempt - 1)
        except ClusterError as error:
            if self.place.store:
                raise
            print(f"{error} The job goes on from what is here.", flush=True)

    def _stop_now(self) -> bool:
        request = read_json_or_none(self.folder / "stop.request")
        return isinstance(request, dict) and bool(request.get("now"))

    def _record_end(self, end: End) -> None:
        """Decide between finished, stopped and failed, and write it down."""
        code = end.code
        facts = {"exit_code": code if code >= 0 else None, "signal": -code if code < 0 else None}
        outcome = outcome_of(self.folder, self.status.attempt)
        reported = read_json_or_none(self.folder / "failure.json")
        if not isinstance(reported, dict) or reported.get("attempt") != self.status.attempt:
            reported = None
        if outcome == "finished" or (outcome == "stopped" and reported is None):
            # A rank that failed takes the others with it, and those believe that they were asked to stop.
            self.status.ended(outcome, message=self._stopped_message() if outcome == "stopped" else "", **facts)
        elif reported is None and self._stop_requested():
            message = f"It did not stop within {self.spec.grace_s:g} seconds and was killed. " if end.forced else ""
            self.status.ended("stopped", message=f"{message}Resume it to go on from its last checkpoint.", **facts)
        elif reported is None and code == 0:
            self.status.ended("finished", **facts)
        else:
            failure = classify(
                exit_code=code,
                signal_number=-code if code < 0 else None,
                reported=reported,
                tail=log_tail(self.folder / "worker.log"),
                killed_for_memory=end.killed_for_memory,
            )
            self.status.ended("failed", failure=failure, **facts)

    def _stopped_message(self) -> str:
        if (self.folder / "stop.request").exists():
            return "It was stopped; what it had is saved."
        return "It was ended by a signal from outside; what it had is saved."


def main(arguments: list[str]) -> None:
    """Take over the lock that the submitter holds (or take it), then supervise."""
    if not arguments or len(arguments) > 2:
        print("usage: python -m cdp.jobs.supervisor <job folder> [<lock descriptor>]", file=sys.stderr)
        raise SystemExit(2)
    private_files()
    survives_a_full_disk()
    folder = Path(arguments[0]).resolve()
    os.environ[VARIABLE] = str(folder)
    if len(arguments) == 2:
        os.set_inheritable(int(arguments[1]), False)
    else:
        try:
            wait_for_lock(folder / "alive.lock", "The job", wait_s=2.0)
        except WorkspaceError as error:
            print(error, file=sys.stderr)
            raise SystemExit(2) from error
    Supervisor(folder).run()


if __name__ == "__main__":
    main(sys.argv[1:])
