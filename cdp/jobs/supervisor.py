"""The supervisor of a job (waiting, starting and stopping the worker, grace period, outcome recorded): ``python -m
cdp.jobs.supervisor <job folder> <descriptor of the held lock>``.

It runs in a session of its own, independent of browser tabs and the app. It holds ``alive.lock`` for its life, waits
in the queue, starts the worker, passes on stop requests, reaps all processes of the worker, and records the outcome.
Its own output goes to ``supervisor.log``.

On a Ray cluster it is the driver of a Ray Job (``… <job folder> --attempt N``), and ``cdp.jobs.ray`` runs the worker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from cdp.base.errors import CdpError, ConfigError
from cdp.base.failures import failure_of
from cdp.base.locks import wait_for_lock
from cdp.base.redaction import cleaned_output
from cdp.base.workspace import Workspace, private_files
from cdp.jobs.devices import CPU, LIGHT, LIGHT_SLOTS, cpu_slots, list_gpus
from cdp.jobs.launchers import End, command, environment, is_launched, starting_folder
from cdp.jobs.logs import classify, log_tail, redirect_output
from cdp.jobs.queue import Queue
from cdp.jobs.records import SUBMITTED, JobSpec, Status, outcome_of, read_spec, written_by
from cdp.jobs.state import JOB_VARIABLE, JobFiles, State, adopt_orphans, children_of, derive, reap, send_signal

QUEUE_POLL_S, POLL_S = 0.25, 0.1  # between looks at the queue, and at the worker
# How long processes may live after the worker's outcome (a hung communication library).
LEAVE_WITHIN_S = 60.0


class Supervisor:
    """One attempt of one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = Workspace(folder.parent.parent)
        self.spec: JobSpec = read_spec(folder)
        self.status = Status.load(folder)
        self.queue = Queue(self.workspace)
        self.asked_to_end = False

    def run(self) -> None:
        """Queue, run, record. Errors of the supervisor become the job's failure."""
        adopt_orphans()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

        try:
            if self.status.cluster:
                end = self._run_on_cluster()
            else:
                devices = self._wait_for_turn()
                end = None if devices is None else self._run_here(devices)

            if end is None:
                self.status.ended("stopped", message="It was stopped before it started.")
            else:
                self._record_end(end)
        except BaseException as error:
            traceback.print_exc()
            send_signal(children_of(os.getpid(), recursive=True), signal.SIGKILL)
            failure = {**failure_of(error), "log_tail": log_tail(self.folder / "supervisor.log")}

            if not isinstance(error, CdpError):
                failure["message"] = f"The supervisor failed: {failure['message']}"

            self.status.ended("failed", failure=failure)
        finally:
            self.queue.remove(self.spec.id)

    def _on_signal(self, *_: Any) -> None:
        """Treat a signal (a shutdown of the machine) as a request to stop."""
        self.asked_to_end = True

    def stop_requested(self) -> bool:
        return self.asked_to_end or (self.folder / "stop.request").exists()

    def _run_on_cluster(self) -> End | None:
        from cdp.jobs.ray import RayRun

        while not self._dependencies_met():
            if self.stop_requested():
                return None
            time.sleep(QUEUE_POLL_S)
        self.status.waiting(f"Waiting for room on the cluster {self.status.cluster}.")
        return RayRun(
            self.folder,
            self.spec,
            self.status.attempt,
            stop_requested=self.stop_requested,
            begun=lambda: self.status.running(supervisor_pid=os.getpid(), worker_pid=0, devices=()),
        ).run()

    def _wait_for_turn(self) -> tuple[str, ...] | None:
        """Return the job's devices once it is its turn; None if it was stopped meanwhile."""
        device = self.spec.device
        slots = cpu_slots()
        present = list_gpus() if device.count else []
        device.check(present)

        gpus = [gpu.uuid for gpu in present]
        room = {CPU: slots, LIGHT: LIGHT_SLOTS}.get(device.lane, max(1, len(gpus)))
        while not self.stop_requested():
            pause = QUEUE_POLL_S
            if self._dependencies_met():
                devices = self.queue.try_take(self.spec.id, slots=slots, gpus=gpus)
                if devices is not None:
                    return (CPU,) if devices == (LIGHT,) else devices
                # Jobs near the front look often, the others now and then.
                pause *= min(20.0, max(1.0, (self.queue.positions().get(self.spec.id, 1) - 8) / room))
            time.sleep(pause)

        return None

    def _dependencies_met(self) -> bool:
        """Return True once all jobs in ``spec.after`` have finished. ConfigError if one was stopped, failed or lost."""
        for job_id in self.spec.after:
            if self.queue.pending(job_id):
                return False
            ended = derive(JobFiles.read(self.workspace.job(job_id)), False, time.time()).state
            if ended is not State.FINISHED:
                # A stopped training has a model, but its score would stand as that of the whole training.
                how = {State.FAILED: "failed", State.STOPPED: "was stopped"}.get(ended, "was cut off or deleted")
                raise ConfigError(
                    f"It builds on the job {job_id}, which {how}.", hint="Resume that job, then this one."
                )
        return True

    def _record_end(self, end: End) -> None:
        """Decide between finished, stopped and failed, and record it."""
        code = end.code
        facts: dict[str, int | None] = {"exit_code": code, "signal": None}
        if code < 0:
            facts = {"exit_code": None, "signal": -code}

        outcome = outcome_of(self.folder, self.status.attempt)
        reported = written_by(self.status.attempt, self.folder / "failure.json")

        if outcome == "finished":
            self.status.ended("finished", **facts)
        elif outcome == "stopped" and reported is None:
            # A failed rank ends the others, which report that they were asked to stop.
            how = "It was ended by a signal from outside"
            if (self.folder / "stop.request").exists():
                how = "It was stopped"
            self.status.ended("stopped", message=f"{how}; its progress is saved.", **facts)
        elif reported is None and self.stop_requested():
            message = "Resume it to go on from its last checkpoint."
            if end.forced:
                message = f"It did not stop within {self.spec.grace_s:g} seconds and was killed. {message}"
            self.status.ended("stopped", message=message, **facts)
        elif reported is None and code == 0:
            self.status.ended("finished", **facts)
        else:
            tail = log_tail(self.folder / "worker.log")
            self.status.ended("failed", failure=classify(code, reported, tail), **facts)

    def _run_here(self, devices: tuple[str, ...]) -> End:
        """Start the worker, its output at the end of ``worker.log``, and wait until no process of it is left."""
        number = self.status.attempt
        with open(self.folder / "worker.log", "ab") as log:
            if number > 1:
                log.write(f"\n--- attempt {number} ---\n".encode())
                log.flush()

            worker = subprocess.Popen(
                command(self.spec, self.folder, devices),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=starting_folder(self.spec, self.folder),
                env=environment(self.spec, devices, number, os.environ),
                process_group=0,
            )

        self.status.running(supervisor_pid=os.getpid(), worker_pid=worker.pid, devices=devices)

        code: int | None = None
        deadline: float | None = None
        forced = stopping = left_behind = False
        while True:
            ended = reap()
            if worker.pid in ended:
                code = worker.returncode = ended[worker.pid]

            ending = code is not None or deadline is not None

            left = children_of(os.getpid(), recursive=True) if ending else [worker.pid]
            if code is not None and not left:
                return End(code, forced)

            moment = time.monotonic()

            if not stopping and self.stop_requested():
                stopping, deadline = True, moment + self.spec.grace_s
                # To the workers themselves: launchers would kill workers that are saving.
                targets = children_of(worker.pid) if is_launched(self.spec) else [worker.pid]
                send_signal(targets, signal.SIGTERM)

            if code is not None and not left_behind:  # a stop's deadline was for the worker
                left_behind = True
                deadline = moment + min(self.spec.grace_s, 10.0)
                send_signal(left, signal.SIGTERM)
            elif deadline is None and outcome_of(self.folder, number) is not None:
                deadline = moment + LEAVE_WITHIN_S

            if deadline is not None and moment >= deadline:
                forced = forced or (stopping and outcome_of(self.folder, number) is None)
                send_signal(left, signal.SIGKILL)

            time.sleep(POLL_S)


@cleaned_output()
def main(folder_name: str, lock_or_attempt: str, number: str = "") -> None:
    """Supervise: here with the submitter's lock, on a cluster (``--attempt N``) with one taken there."""
    private_files()
    folder = Path(folder_name).resolve()
    os.environ[JOB_VARIABLE] = str(folder)

    on_cluster = lock_or_attempt == "--attempt"
    if on_cluster:
        wait_for_lock(folder / "alive.lock", "The job", wait_s=60.0)
    else:
        os.set_inheritable(int(lock_or_attempt), False)

    supervisor = Supervisor(folder)

    if on_cluster:
        if supervisor.status.attempt != int(number) or supervisor.status.phase != SUBMITTED:
            print("The attempt is over: nothing is started.")
            return
        redirect_output(folder / "supervisor.log")
        supervisor.status.waiting("")

    supervisor.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
