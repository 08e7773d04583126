"""The supervisor's side of a job on a Ray cluster: hands it over, watches the node and the head, hears of its end.

The supervisor stays where the job was submitted and keeps its lock, so that state, queue, pages and commands need not
know where a worker runs. Who dies is told from two silences: of the node, which renews ``node.json`` every second, and
of the head, which is asked every second.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cdp import __version__
from cdp.base.errors import ClusterError
from cdp.jobs import handover, lease
from cdp.jobs.attending import End
from cdp.jobs.launchers import python_path
from cdp.jobs.lease import NODE, Watch, silence_s
from cdp.jobs.node import LOG_PREFIX, PAD_VARIABLE
from cdp.jobs.place import VARIABLE as PLACE_VARIABLE
from cdp.jobs.place import Place
from cdp.jobs.ray_cluster import RESUME, Connection, Poll, cannot_begin
from cdp.jobs.spec import JobSpec
from cdp.jobs.status import Status
from cdp.jobs.store.bucket import shown

if TYPE_CHECKING:
    from cdp.jobs.store.here import Here

LOOK_S = 0.25
"""Seconds between looks at the node's file and at the stop request."""

LAST_WORDS_S = 5.0
"""How long the file of a node may take to appear here, once Ray says that its process has ended."""

FORCED_AFTER_S = 20.0
"""How long after the grace period Ray is asked to end what did not stop."""

ENDED = ("STOPPED", "SUCCEEDED", "FAILED")

PASSED = ("CDP_UMASK", "CDP_PLUGINS", "CDP_BASE_URL", "OPENAI_BASE_URL", "HF_HUB_OFFLINE")
KEYS = ("CDP_API_KEY", "OPENAI_API_KEY", "HF_TOKEN")
"""What a worker on this machine would inherit and a node cannot know: settings, and keys, which go covered."""

LIGHT_CPUS = 0.1


class Remote:
    """One attempt of a job on a cluster. To be closed: what nobody waits for any more is then ended there."""

    def __init__(self, folder: Path, spec: JobSpec, status: Status, place: Place) -> None:
        self.folder, self.spec, self.status, self.place = folder, spec, status, place
        self.attempt = status.attempt
        self.lease = lease.lease(folder, self.attempt)
        self.node = Watch(folder / NODE)
        self.connection: Connection | None = None
        self.poll: Poll | None = None
        self.submission = ""
        self.ended = False
        self.side: Here | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        handover.drop(self.folder)
        self._renew(over=True, at_once=True)
        if self.side is not None:
            self.side.close()
        if self.poll is not None:
            self.poll.close()
        if self.connection is not None and self.submission and not self.ended:
            self.connection.stop(self.submission)

    def run(self, stop_requested: Callable[[], bool], stop_now: Callable[[], bool]) -> End | None:
        """Run the attempt. How it ended; None where it was stopped before a node had begun. ClusterError where it is
        the cluster that failed."""
        self.status.waiting(f"Waits for room on the cluster {self.place.address}.")
        self.connection = Connection(self.place.address)
        lease.wait_until_over(self.folder, self.attempt, stop_requested, self.spec.grace_s + 60.0)
        limit = silence_s()
        self._renew(at_once=True)
        if self.place.store and not self._send(stop_requested):
            return None
        self._submit(0)
        began = forced_at = finished_at = None
        while True:
            self._renew(stop=stop_requested(), now=stop_now())
            node = self._of_this_attempt()
            if node and began is None:
                began = time.monotonic()
                self._has_begun(node)
            if node.get("phase") == "ended":
                self.ended = True
                return End(int(node["exit_code"]), bool(node.get("forced")), bool(node.get("killed_for_memory")))
            if stop_requested():
                if began is None:
                    return None
                forced_at = forced_at or time.monotonic() + self.spec.grace_s + FORCED_AFTER_S
                if stop_now():
                    forced_at = min(forced_at, time.monotonic() + LAST_WORDS_S)
                if time.monotonic() > forced_at:
                    return End(-signal.SIGKILL, forced=True)  # closing this has Ray kill what is left
            finished_at = self._judge(began, finished_at, limit)
            time.sleep(LOOK_S)

    def _send(self, stop_requested: Callable[[], bool]) -> bool:
        """Send what the job needs to the store of its place; whether nobody stopped it meanwhile."""
        from cdp.jobs.store.here import Here

        self.status.waiting(f"Sends what it needs to {shown(self.place.store)}.")
        self.side = Here(self.folder, self.spec, self.place.store, self.attempt)
        print(self.side.send(lambda: not stop_requested()), flush=True)
        self.side.start()
        self.status.waiting(f"Waits for room on the cluster {self.place.address}.")
        return not stop_requested()

    def _judge(self, began: float | None, finished_at: float | None, limit: float) -> float | None:
        """ClusterError once the head or the node counts as dead. When Ray was first seen to say that it is over."""
        assert self.poll is not None
        if self.side is not None and self.side.error is not None:
            raise self.side.error
        if self.poll.silent_s > limit:
            raise ClusterError(
                f"The cluster at {self.place.address} has not answered for {self.poll.silent_s:.0f} seconds: its head "
                "or the network is down.",
                hint=RESUME,
            )
        if began is not None and self.node.silent_s > limit:
            where = "the store" if self.side is not None else "the workspace"
            raise ClusterError(f"The cluster's node {self._host} died, or is cut off from {where}.", hint=RESUME)
        info = self.poll.info
        state = "" if info is None else str(getattr(info.status, "value", info.status))
        if state not in ENDED or (self.side is not None and self.side.busy):
            return None
        if began is None and info.error_type == "JOB_SUPERVISOR_ACTOR_START_TIMEOUT":
            self._submit(1 + int(self.submission.rpartition(".")[2]))  # the cluster was full for a quarter of an hour
            return None
        finished_at = finished_at or time.monotonic()
        if time.monotonic() - finished_at > LAST_WORDS_S:
            self.ended = True
            raise self._why(state, info)
        return finished_at

    def _why(self, state: str, info: Any) -> ClusterError:
        """Why it is over although no node has told how its worker ended."""
        assert self.connection is not None
        if info.error_type == "JOB_SUPERVISOR_ACTOR_DIED":
            return ClusterError(f"The cluster's node {self._host} died.", hint=RESUME)
        if state == "STOPPED":
            return ClusterError("Somebody has stopped the job in Ray.", hint="Resume it to go on from its checkpoint.")
        text = f"{info.message or ''}\n{self.connection.log(self.submission)}"
        said = [line.partition(LOG_PREFIX)[2].strip() for line in text.splitlines() if line.startswith(LOG_PREFIX)]
        if said:
            return ClusterError(said[-1])
        return cannot_begin(text)

    @property
    def _host(self) -> str:
        return str(self.node.record.get("host", "")) if self._of_this_attempt() else "that was to run it"

    def _of_this_attempt(self) -> dict[str, Any]:
        record = self.node.look()
        return record if record.get("attempt") == self.attempt else {}

    def _renew(self, *, at_once: bool = False, **facts: Any) -> None:
        self.lease.renew(at_once=at_once, version=__version__, **facts)

    def _submit(self, number: int) -> None:
        assert self.connection is not None
        if self.poll is not None:
            self.poll.close()
        env = {name: os.environ[name] for name in PASSED if os.environ.get(name)}
        names = dict.fromkeys((*KEYS, *self.spec.secrets))
        pad = handover.put(self.folder, {name: os.environ[name] for name in names if os.environ.get(name)})
        env |= {PAD_VARIABLE: pad} if pad else {}
        if self.side is not None:
            self.side.put_keys()
        asked, own = asked_of(self.place, self.spec), own_of(self.place, self.spec)
        env |= {PLACE_VARIABLE: json.dumps(asked.to_dict())} if asked else {}
        # Ray kills what does not end within this time of its asking; a worker may take its grace period to save.
        env["RAY_JOB_STOP_WAIT_TIME_S"] = str(round(self.spec.grace_s + FORCED_AFTER_S))
        readable = re.sub(r"[^A-Za-z0-9_-]", "", self.spec.id)
        submission = f"{readable}.{self.attempt}.{number}"
        self.connection.submit(
            submission,
            on_node(*self._command),
            own,
            cpus=own.cpus or 0.0,
            gpus=own.gpus or 0,
            env=env,
            about={"job": self.spec.id, "name": self.spec.name},
        )
        self.submission = submission
        self.poll = self.connection.poll(submission)

    @property
    def _command(self) -> tuple[str, ...]:
        if self.side is None:
            return "cdp.jobs.node", str(self.folder), str(self.attempt)
        return "cdp.jobs.store.there", self.place.store, self.side.job, str(self.attempt)

    def _has_begun(self, node: dict[str, Any]) -> None:
        self.status.running(
            supervisor_pid=os.getpid(),
            worker_pid=0,
            devices=tuple(node.get("devices") or ()),
            host=str(node.get("host", "")),
            clock_offset=time.monotonic() - float(node.get("clock", time.monotonic())),
        )


def cpus_of(place: Place, spec: JobSpec) -> float:
    """The CPUs that a job takes on a cluster: what was asked for, else one for each process; a light job hardly any."""
    if place.cpus is not None:
        return place.cpus
    return LIGHT_CPUS if spec.device.idle else float(spec.device.processes)


def asked_of(place: Place, spec: JobSpec) -> Place | None:
    """What each Ray worker of a training has, and how many there are; None where it runs on one node."""
    if not place.workers:
        return None
    return replace(place, address="", cpus=cpus_of(place, spec), gpus=spec.device.count)


def own_of(place: Place, spec: JobSpec) -> Place:
    """What the process of a job that Ray starts has itself.

    What starts a group takes nothing, so that Ray keeps it on the head: it does not die with a node of the group, and
    no process of that lacks room for it.
    """
    if not asked_of(place, spec):
        return replace(place, cpus=cpus_of(place, spec), gpus=spec.device.count)
    return Place(place.address, cpus=0.0, gpus=0)


def on_node(module: str, *words: str) -> str:
    """What Ray runs: with this Python where the node has it at the same path, else with the one that Ray finds."""
    python, path = shlex.quote(sys.executable), python_path({})
    ours = f"PYTHONPATH={shlex.quote(path)}${{PYTHONPATH:+:$PYTHONPATH}} " if path else ""
    return f'P={python}; [ -x "$P" ] || P=python; {ours}exec "$P" -m {module} {shlex.join(words)}'
