"""Ray workers among which a stage of one job is divided: the crew that ``cdp.base.crew`` describes, on a cluster.

A job that asked for it (``--resources workers=4``) finds the crew from within its worker::

    crew = of(job.folder)                       # None where the job runs on one machine
    for number, result in crew.each(encode_shard, parts, should_stop=job.stop_requested):
        ...

Each member is a process of its own (a Ray actor, spread over the nodes), which keeps what it loaded until the job
ends. It has one part at a time; whoever is free gets the next. Who dies is replaced, and its part given to the next
that is free: so a node that comes back, or one that there was no room for at first, joins in. Ray ends the members when
the job's worker ends, however it does.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from cdp import __version__
from cdp.base.crew import VARIABLE, Stopped, name_of
from cdp.base.errors import ClusterError
from cdp.base.imports import UNUSED_METRICS, load_when_called
from cdp.base.redaction import redact
from cdp.base.worker import COLLECT_AFTER
from cdp.base.workspace import private_files
from cdp.jobs import handover
from cdp.jobs.launchers import SPINS, python_path
from cdp.jobs.place import Place
from cdp.jobs.ray_cluster import RESUME, cannot_begin
from cdp.jobs.remote import KEYS, PASSED
from cdp.jobs.spec import read_spec

P = TypeVar("P")
R = TypeVar("R")

TRIES = 3
"""How often a part is begun whose worker dies, and a worker that does not come up, before the job fails."""

LOOK_S = 0.2
"""Seconds between looks at the request to stop."""

TELL_S = 1.0
"""Seconds between two words on how far it is, while nothing ends."""

NO_ROOM_S = 30.0
"""After how long without a single worker the log says what is waited for."""


def of(folder: Path, environment: Mapping[str, str] | None = None) -> RayCrew | None:
    """The crew of the job in ``folder``; None where its work is not divided. Nothing is started before it is used."""
    text = (os.environ if environment is None else environment).get(VARIABLE, "")
    asked = Place.from_dict(json.loads(text)) if text else Place()
    return RayCrew(folder, asked) if asked.workers else None


class RayCrew:
    """See ``cdp.base.crew.Crew``. To be closed, or left to the end of the process."""

    def __init__(self, folder: Path, asked: Place) -> None:
        self.folder, self.asked = folder, asked
        self.size, self.gpus = asked.workers or 1, asked.gpus or 0
        self._settings: dict[str, Any] | None = None
        self._members: list[_Member] = []
        self._failed_starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the members and leave the cluster."""
        if self._settings is None:
            return
        import ray

        for member in self._members:
            member.kill()
        self._members.clear()
        with suppress(OSError):
            (self.folder / self._settings["keys"].partition(":")[0]).unlink(missing_ok=True)
        self._settings = None
        with _own_signals():
            ray.shutdown()

    def each(
        self,
        task: Callable[[P], R],
        parts: Iterable[P],
        *,
        should_stop: Callable[[], bool] | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[tuple[int, R]]:
        """As ``Crew.each`` says. ClusterError where workers do not come up, or die again and again on one part."""
        name = name_of(task)
        upcoming = _Upcoming(parts)
        done, told, began = 0, time.monotonic(), time.monotonic()
        waiting_told = False
        try:
            while upcoming.at_hand() or any(member.part for member in self._members):
                if should_stop is not None and should_stop():
                    raise Stopped
                self._fill(upcoming, name)
                for member in self._heard_of():
                    answer = self._answer(member, upcoming)
                    if answer is None:
                        continue
                    done += 1
                    self._fill(upcoming, name)  # before the caller has its look: nobody waits for that
                    if on_done is not None:
                        on_done(done)
                        told = time.monotonic()
                    yield answer
                moment = time.monotonic()
                if on_done is not None and moment - told > TELL_S:
                    on_done(done)
                    told = moment
                if not waiting_told and moment - began > NO_ROOM_S and not any(m.ready for m in self._members):
                    waiting_told = True
                    what = self.asked.resources
                    print(f"No Ray worker has begun so far: does the cluster have room for {what}?", flush=True)
        finally:
            for member in [m for m in self._members if m.part is not None]:
                self._dismiss(member)

    def _fill(self, upcoming: _Upcoming, name: str) -> None:
        """A part for everybody who is free; as many members as there are parts for."""
        for member in self._members:
            if member.ready and member.part is None:
                part = upcoming.take()
                if part is None:
                    return
                member.give(name, part)
        if len(self._members) < self.size:
            coming = sum(not member.ready for member in self._members)
            for _ in range(min(self.size - len(self._members), upcoming.at_hand(self.size) - coming)):
                self._members.append(_Member(self._started(), self.asked))

    def _heard_of(self) -> list[_Member]:
        """The members of whom there is news, after a moment's wait for any."""
        import ray

        waited = {member.ref: member for member in self._members if member.ref is not None}
        if not waited:
            time.sleep(LOOK_S)
            return []
        refs = list(waited)
        ready, _ = ray.wait(refs, num_returns=1, timeout=LOOK_S)
        if ready:
            ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        return [waited[ref] for ref in ready]

    def _answer(self, member: _Member, upcoming: _Upcoming) -> tuple[int, Any] | None:
        """What a member has done; None where it has come up, or died. What its task raised is raised."""
        import ray
        from ray.exceptions import RayError

        try:
            answer = ray.get(member.ref)
        except RayError as error:
            part = member.part
            self._dismiss(member)
            text = redact(str(error))
            if part is None:
                self._failed_starts += 1
                print(f"A Ray worker did not come up: {_last_line(text)}", flush=True)
                if self._failed_starts >= TRIES:
                    raise cannot_begin(text) from None
                return None
            print(f"A Ray worker was lost with part {part.number}: {_last_line(text)}", flush=True)
            part.tries += 1
            if part.tries >= TRIES:
                raise ClusterError(
                    f"Ray workers died {TRIES} times at the same part of the work ({_last_line(text)}).",
                    hint=f"Have they enough memory? Ask for more, as --resources memory=16. {RESUME}",
                ) from None
            upcoming.give_back(part)
            return None
        member.ref = None
        if not member.ready:
            member.ready = True
            self._failed_starts = 0
            _greeted(answer)
            return None
        part, member.part = member.part, None
        assert part is not None
        if answer[0] == "failed":
            raise _raised(*answer[1:])
        return part.number, answer[1]

    def _dismiss(self, member: _Member) -> None:
        member.kill()
        self._members.remove(member)

    def _started(self) -> dict[str, Any]:
        """Connected to the cluster that this process runs on; what a member is told."""
        if self._settings is None:
            import logging

            import ray

            try:
                with _own_signals():
                    ray.init(address="auto", log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
            except (ConnectionError, RuntimeError) as error:
                raise ClusterError(f"The job's Ray cluster does not answer ({_last_line(str(error))}).",
                                   hint=RESUME) from error  # fmt: skip
            names = dict.fromkeys((*KEYS, *read_spec(self.folder).secrets))
            keys = handover.put(self.folder, {name: os.environ[name] for name in names if os.environ.get(name)})
            self._settings = {"folder": str(self.folder), "keys": keys, "gpus": self.gpus}
        return self._settings


class _Part:
    def __init__(self, number: int, value: Any) -> None:
        self.number, self.value, self.tries = number, value, 0


class _Upcoming:
    """Parts that nobody has begun: those given back, those drawn ahead, and those still to be drawn."""

    def __init__(self, parts: Iterable[Any]) -> None:
        self._parts = enumerate(parts)
        self._waiting: list[_Part] = []

    def at_hand(self, most: int = 1) -> int:
        """How many there are to begin, counted up to ``most`` by drawing them."""
        while len(self._waiting) < most and (drawn := next(self._parts, None)) is not None:
            self._waiting.append(_Part(*drawn))
        return min(most, len(self._waiting))

    def take(self) -> _Part | None:
        return self._waiting.pop(0) if self.at_hand() else None

    def give_back(self, part: _Part) -> None:
        self._waiting.insert(0, part)


class _Member:
    """One Ray worker as the job's own worker sees it: it comes up, is ready, and has a part or none."""

    def __init__(self, settings: dict[str, Any], asked: Place) -> None:
        import ray

        options: dict[str, Any] = {
            "num_cpus": asked.cpus or 0,
            "num_gpus": asked.gpus or 0,
            "scheduling_strategy": "SPREAD",
            "max_restarts": 0,
            "max_task_retries": 0,
            "runtime_env": {"env_vars": _environment()},
        }
        if asked.memory:
            options["memory"] = int(asked.memory * 1e9)
        if asked.accelerator:
            options["resources"] = {f"accelerator_type:{asked.accelerator}": 0.001}
        remote: Any = ray.remote(Member)
        self.actor = remote.options(**options).remote(settings)
        self.ref: Any = self.actor.about.remote()
        self.ready = False
        self.part: _Part | None = None

    def give(self, task: str, part: _Part) -> None:
        self.part = part
        self.ref = self.actor.do.remote(task, part.value)

    def kill(self) -> None:
        import ray

        with suppress(Exception):  # it is dead, or nobody can be asked: Ray ends it with this process
            ray.kill(self.actor)


class Member:
    """What runs in a Ray worker: a process of its own for the time of the job."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        os.environ.pop(VARIABLE, None)
        os.environ.update(handover.look(Path(settings["folder"]), str(settings["keys"])))
        if not settings["gpus"]:
            os.environ.update(CUDA_VISIBLE_DEVICES="", ACCELERATE_USE_CPU="true")
        private_files()
        gc.set_threshold(COLLECT_AFTER)
        load_when_called(UNUSED_METRICS)

    def about(self) -> dict[str, Any]:
        """Where it is, and which version."""
        import ray

        node = ray.get_runtime_context().get_node_id()
        return {"version": __version__, "host": socket.gethostname(), "node": node}

    def do(self, task: str, part: Any) -> tuple[Any, ...]:
        """("done", result) or ("failed", the exception pickled, its traceback). Ray shows what a task raises to
        everybody who can open its dashboard, so nothing is raised here."""
        module, _, name = task.partition(":")
        try:
            return "done", getattr(importlib.import_module(module), name)(part)
        except Exception as error:
            return "failed", _packed(error), traceback.format_exc()


def _environment() -> dict[str, str]:
    """What a member has of this worker's environment; the rest is its node's own. Keys go another way."""
    passed = {name: os.environ[name] for name in PASSED if os.environ.get(name)}
    own = python_path({})
    return {
        **passed,
        "PYTHONPATH": f"{own}{os.pathsep}${{PYTHONPATH}}" if own else "${PYTHONPATH}",
        "CDP_WORKSPACE": os.environ.get("CDP_WORKSPACE", ""),
        "TOKENIZERS_PARALLELISM": os.environ.get("TOKENIZERS_PARALLELISM", "false"),
        "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", SPINS),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def _packed(error: Exception) -> bytes:
    try:
        packed = pickle.dumps(error)
        pickle.loads(packed)
    except Exception:  # a library's own error, which cannot travel
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return packed


def _raised(packed: bytes, trace: str) -> Exception:
    error: Exception = pickle.loads(packed)
    print(f"In a Ray worker:\n{redact(trace)}", file=sys.stderr, flush=True)
    return error


def _greeted(about: Mapping[str, Any]) -> None:
    if about["version"] != __version__:
        raise ClusterError(
            f"The node {about['host']} has CDP Studio {about['version']}, and this one {__version__}.",
            hint="Install the same version on every node.",
        )
    print(f"A Ray worker begins on {about['host']}, node {about['node']}.", flush=True)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing was said"


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself, which is how a worker hears that it should stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
