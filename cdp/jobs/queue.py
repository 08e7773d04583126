"""The queue for devices, FIFO per lane (CPU slots, GPUs, light jobs): whose turn it is, tickets of dead jobs.

Each active job has a ticket, a file ``queue/<sequence>.<waiting|running>.<lane>.<job id>.json``. Tickets change only
under ``queue/queue.lock``. Tickets of dead jobs are removed by the next reader, so a killed supervisor blocks no other
job. ``grant`` decides, and is pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from cdp.base.errors import WorkspaceError
from cdp.base.locks import locked
from cdp.base.workspace import Workspace, write_json
from cdp.jobs.devices import CPU, LIGHT, LIGHT_SLOTS, DeviceRequest
from cdp.jobs.records import phase_of, read_record
from cdp.jobs.state import has_process, is_alive

# The lane of jobs on a cluster: Ray queues them, their tickets only mark them as active.
CLUSTER = "cluster"
_NAME = re.compile(r"(\d+)\.(waiting|running)\.([a-z]+)\.(.+)\.json")


@dataclass(frozen=True, slots=True)
class Ticket:
    """A job's place in the queue. ``granted`` are its devices once it runs.

    ``ready`` is False until its dependencies have ended: it keeps its place and blocks no other job.
    """

    sequence: int
    job_id: str
    request: DeviceRequest
    granted: tuple[str, ...] = ()
    ready: bool = True


def grant(tickets: Sequence[Ticket], sequence: int, *, slots: int, gpus: Sequence[str]) -> tuple[str, ...] | None:
    """Return the devices that the ticket ``sequence`` may take now, None if it has to wait."""
    # Strictly FIFO within a lane: a job that waits for n GPUs keeps every free GPU, so smaller jobs cannot starve it.
    held = Counter(chain.from_iterable(map(attrgetter("granted"), tickets)))
    free = {CPU: slots - held[CPU], LIGHT: LIGHT_SLOTS - held[LIGHT]}
    free_gpus = [gpu for gpu in gpus if gpu not in held]

    for ticket in sorted(tickets, key=lambda t: t.sequence):
        if ticket.granted or not ticket.ready:
            continue

        request = ticket.request
        given: tuple[str, ...] | None = None
        if request.lane in free:
            if free[request.lane] > 0:
                given = (request.lane,)
            free[request.lane] -= 1
        elif len(free_gpus) >= request.count:
            given, free_gpus = tuple(free_gpus[: request.count]), free_gpus[request.count :]
        else:
            free_gpus = []

        if ticket.sequence == sequence:
            return given

    return None


class TicketName(NamedTuple):
    """The parts of a ticket's file name."""

    sequence: int
    state: str
    lane: str
    job_id: str
    path: Path


class Queue:
    """The tickets of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.folder = workspace.root / "queue"

    @contextmanager
    def _exclusive(self, wait_s: float = 60.0) -> Iterator[None]:
        with locked(self.folder / "queue.lock", "The queue of jobs", wait_s=wait_s):
            yield

    def add(
        self, sequence: int, job_id: str, request: DeviceRequest, after: Sequence[str] = (), *, cluster: bool = False
    ) -> None:
        """Put a job at the end of its lane, to run after the jobs in ``after``. ``sequence`` is the clock's."""
        content = {"request": asdict(request), "after": list(after)}
        with self._exclusive():
            write_json(self._path(sequence, "waiting", CLUSTER if cluster else request.lane, job_id), content)

    def remove(self, job_id: str) -> None:
        """Remove the job's ticket, if any: its place or its devices."""
        with self._exclusive():
            for name in self._names():
                if name.job_id == job_id:
                    name.path.unlink(missing_ok=True)

    def clear_dead(self) -> None:
        """Remove the tickets of dead jobs, unless the queue is in use just now."""
        if all(map(self._is_valid, self._names())):
            return
        with suppress(WorkspaceError), self._exclusive(wait_s=0.05):
            for name in self._names():
                if not self._is_valid(name):
                    name.path.unlink(missing_ok=True)

    def try_take(self, job_id: str, *, slots: int, gpus: Sequence[str]) -> tuple[str, ...] | None:
        """Take the devices for a waiting job if it is its turn, else None. Removes tickets of dead jobs."""
        with self._exclusive():
            tickets: list[Ticket] = []
            mine: TicketName | None = None
            for name in self._names():
                if name.job_id != job_id and not self._is_valid(name):
                    name.path.unlink(missing_ok=True)
                    continue

                if name.lane == CLUSTER:
                    continue

                content = read_record(name.path) or {}
                request = DeviceRequest.from_dict(content.get("request", {}))
                granted = tuple(content.get("granted", ())) if name.state == "running" else ()
                ready = not any(self.pending(other) for other in content.get("after", ()))
                tickets.append(Ticket(name.sequence, name.job_id, request, granted, ready))

                if name.job_id == job_id and name.state == "waiting":
                    mine, wanted = name, request

            if mine is None:
                raise WorkspaceError(
                    f"The job's ticket is missing in {self.folder}.", hint="Resume the job to queue it again."
                )

            given = grant(tickets, mine.sequence, slots=slots, gpus=gpus)
            if given is not None:
                running = self._path(mine.sequence, "running", mine.lane, job_id)
                write_json(running, {"request": asdict(wanted), "granted": list(given)})
                mine.path.unlink()

            return given

    def positions(self) -> dict[str, int]:
        """Return each waiting job's place in its lane, from 1. Reads file names only."""
        counts: dict[str, int] = {}
        positions: dict[str, int] = {}
        for name in self._names():
            if name.state == "waiting":
                counts[name.lane] = counts.get(name.lane, 0) + 1
                positions[name.job_id] = counts[name.lane]
        return positions

    def job_ids(self) -> list[str]:
        """Return the jobs that have a ticket: all active ones, perhaps some that were lost."""
        return list(dict.fromkeys(name.job_id for name in self._names()))

    def pending(self, job_id: str) -> bool:
        """Return True if a job is active: not ended, lost or deleted."""
        folder = self.workspace.jobs / job_id
        return phase_of(folder) != "ended" and is_alive(folder)

    def _is_valid(self, name: TicketName) -> bool:
        """Return True for the ticket of a living job; one that a cluster has yet to start has its own lane alone."""
        # A copied workspace may say "submitted" of any job: no device is kept for it.
        folder = self.workspace.jobs / name.job_id
        return is_alive(folder) if name.lane == CLUSTER else has_process(folder)

    def _path(self, sequence: int, state: str, lane: str, job_id: str) -> Path:
        return self.folder / f"{sequence:020d}.{state}.{lane}.{job_id}.json"

    def _names(self) -> list[TicketName]:
        try:
            found = [(path, _NAME.fullmatch(path.name)) for path in self.folder.glob("[0-9]*.json")]
        except OSError:
            return []
        names = [TicketName(int(m[1]), m[2], m[3], m[4], path) for path, m in found if m is not None]
        return sorted(names, key=lambda name: name.sequence)
