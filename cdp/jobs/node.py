"""A job's side on a node of a cluster: ``python -m cdp.jobs.node <job folder> <attempt>``, started by Ray.

It does what the supervisor does for a worker on its own machine: starts it, hears that it should stop, reaps what it
leaves. How it ended goes into ``node.json``, from which the supervisor records it. What keeps it from beginning is said
in one line, which Ray keeps in its log and the supervisor reads there.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdp import __version__
from cdp.base.errors import CdpError, ClusterError
from cdp.base.locks import wait_for_lock
from cdp.base.output import survives_a_full_disk
from cdp.base.worker import LOCK_VARIABLE
from cdp.base.workspace import private_files
from cdp.jobs import handover, processes
from cdp.jobs.alive import VARIABLE
from cdp.jobs.attending import Attendant
from cdp.jobs.devices import DeviceRequest
from cdp.jobs.launchers import GROUP, python_path
from cdp.jobs.lease import (
    LEASE,
    LOCK,
    NODE,
    RENEW_S,
    SHOWN_WITHIN_S,
    UNWANTED_AFTER_S,
    Pulse,
    Watch,
    about_this_node,
    wait_until_shown,
)
from cdp.jobs.place import VARIABLE as PLACE_VARIABLE
from cdp.jobs.queue import CPU
from cdp.jobs.spec import JobSpec, read_spec

LOG_PREFIX = "cdp:"
"""How the line begins that says why a node did not begin."""

PAD_VARIABLE = "CDP_HANDOVER"


class Node:
    """One attempt of one job on this node."""

    def __init__(self, folder: Path, attempt: int) -> None:
        self.folder, self.attempt = folder, attempt
        self.spec: JobSpec = read_spec(folder)
        if PLACE_VARIABLE in os.environ:  # a training's, whose Ray workers have the devices
            self.spec = replace(self.spec, launcher=GROUP, device=DeviceRequest.cpu())
        self.pulse = Pulse(folder / NODE, attempt)
        self.lease = Watch(folder / LEASE)
        self.stopping = self.killing = False
        self.facts: dict[str, Any] = {"phase": "running", "pid": os.getpid(), **about_this_node()}
        self._over = threading.Event()

    def run(self) -> None:
        """Begin, attend, tell how it ended."""
        self._check_lease()
        wait_for_lock(self.folder / LOCK, "The job's folder", wait_s=10.0)
        inherited = self._environment()
        processes.adopt_orphans()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        devices = self._devices()
        attendant = Attendant(
            self.folder,
            self.spec,
            self.attempt,
            stop_requested=lambda: self.stopping,
            stop_now=lambda: self.killing,
        )
        self.facts["worker_pid"] = attendant.start(devices, inherited)
        self.facts["devices"] = list(devices)
        keeper = threading.Thread(target=self._keep_in_touch, name="pulse")
        keeper.start()
        try:
            end = attendant.watch()
        finally:
            self._over.set()
            keeper.join()
        self.facts.update(phase="ended", exit_code=end.code, forced=end.forced, killed_for_memory=end.killed_for_memory)
        self.pulse.renew(at_once=True, **self.facts)

    def _check_lease(self) -> None:
        deadline = time.monotonic() + SHOWN_WITHIN_S
        while (record := self.lease.look()).get("attempt") != self.attempt and time.monotonic() < deadline:
            time.sleep(0.2)
        if record.get("attempt") != self.attempt or record.get("over"):
            raise ClusterError(f"Attempt {self.attempt} of the job is not wanted any more.")
        if record.get("version") != __version__:
            raise ClusterError(
                f"The job was submitted by CDP Studio {record.get('version')}, and the cluster has {__version__}.",
                hint="Install the same version in both places.",
            )

    def _environment(self) -> dict[str, str]:
        """The worker's environment: the node's own, with what was handed over."""
        values = {**os.environ, **handover.take(self.folder, os.environ.pop(PAD_VARIABLE, ""))}
        values.pop(PAD_VARIABLE, None)
        values.update(
            {
                VARIABLE: str(self.folder),
                LOCK_VARIABLE: LOCK,
                "PYTHONPATH": python_path(os.environ),
                "CDP_WORKSPACE": str(self.folder.parent.parent),
            }
        )
        return values

    def _devices(self) -> tuple[str, ...]:
        """The GPUs that Ray has set aside for the job, by the names that CUDA knows; else the CPU."""
        if not self.spec.device.count:
            return (CPU,)
        given = tuple(part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip())
        if len(given) < self.spec.device.count:
            raise ClusterError(
                f"The job needs {self.spec.device.count} GPUs, and Ray gave it {len(given)} on {self.facts['host']}.",
                hint="Ask for as many as one node has.",
            )
        return given[: self.spec.device.count]

    def _on_signal(self, *_: Any) -> None:
        """Ray ends the job, or the node shuts down: the same as a request to stop."""
        self.stopping = True

    def _keep_in_touch(self) -> None:
        """Say every second that the node lives, and hear whether the job is still wanted."""
        while not self._over.wait(RENEW_S / 4):
            try:
                self.pulse.renew(**self.facts)
                lease = self.lease.look()
            except CdpError as error:  # a full disk, a file server that does not answer: the silence will tell
                print(f"{LOG_PREFIX} {error}", file=sys.stderr, flush=True)
                continue
            unwanted = lease.get("attempt") != self.attempt or lease.get("over")
            if unwanted or lease.get("stop") or self.lease.silent_s > UNWANTED_AFTER_S:
                self.stopping = True
            self.killing = self.killing or bool(lease.get("now"))


def main(arguments: list[str]) -> None:
    """Run one attempt. Exit code 3 and a line on stderr where it cannot begin."""
    private_files()
    survives_a_full_disk()
    folder = Path(arguments[0])
    try:
        wait_until_shown(folder)
        Node(folder, int(arguments[1])).run()
    except CdpError as error:
        print(f"{LOG_PREFIX} {error}", file=sys.stderr, flush=True)
        raise SystemExit(3) from None


if __name__ == "__main__":
    main(sys.argv[1:])
