"""Background jobs: a job as shown, listing, finding, waiting. One supervisor process per job; its state is in files.

::

    job_id = submit(workspace, kind="train", name="…", module="cdp.workers.training", config={…})
    view(workspace, job_id).state            # queued, running, stalled, stopping, stopped, finished, failed, lost
    stop(workspace, job_id)                  # saves a checkpoint, keeps the model
    resume(workspace, job_id)                # a new attempt, from the last checkpoint

Workers are started by module name; this room imports none of them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from cdp.base.errors import ClusterError, ConfigError, WorkspaceError
from cdp.base.locks import clean, is_held
from cdp.base.redaction import redact
from cdp.base.text import pick
from cdp.base.workspace import Workspace, disk_fault, folder_size, is_name
from cdp.jobs import control
from cdp.jobs.control import delete, resume, stop, submit
from cdp.jobs.devices import DeviceRequest, Gpu, cpu_slots, gpu_trouble, list_gpus
from cdp.jobs.logs import follow_log, log_tail, read_log
from cdp.jobs.queue import Queue
from cdp.jobs.records import SUBMITTED, JobSpec, is_own, load_spec, phase_of, read_spec
from cdp.jobs.state import JobFiles, JobState, State, by_job, derive, send_signal

__all__ = [
    "DeviceRequest", "Gpu", "JobFiles", "JobSpec", "JobState", "JobView", "State", "cpu_slots", "delete", "derive",
    "follow_log", "gpu_trouble", "is_own", "list_active", "list_gpus", "list_jobs", "load_spec", "read_log",
    "resolve_job", "resume", "stop", "submit", "view", "wait",
]  # fmt: skip

# When the cluster of a submitted job was last asked, by job.
_asked: dict[str, float] = {}


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as shown. Times are ISO 8601 in UTC ("" if not yet), durations seconds, sizes bytes.

    ``phase``, ``done``, ``total``, ``unit``, ``rate`` (units per second) and ``eta_s`` come from the worker's
    heartbeat; ``position`` counts from 1, None unless the job waits; ``failure`` has kind, message, hint and log_tail;
    ``size`` is None in lists; ``n_failures`` counts failed items (documents, pairs, queries); ``cluster`` is the Ray
    cluster of the current attempt, "" for this machine.
    """

    id: str
    kind: str
    name: str
    state: State
    message: str
    phase: str
    done: int
    total: int
    unit: str
    rate: float | None
    eta_s: float | None
    position: int | None
    attempt: int
    created: str
    started: str
    ended: str
    seconds: float | None
    failure: dict[str, Any] | None
    config: dict[str, Any]
    inputs: dict[str, Any]
    devices: tuple[str, ...]
    has_model: bool
    sequence: int
    folder: Path
    size: int | None = None
    n_failures: int = 0
    cluster: str = ""

    @property
    def active(self) -> bool:
        return self.state.active

    @property
    def fraction(self) -> float:
        """The finished share of the current phase, from 0 to 1; 1 for a finished job."""
        if self.state is State.FINISHED:
            return 1.0
        return min(1.0, max(0.0, self.done / self.total)) if self.total > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, for ``--json``."""
        values = asdict(self)
        values.update(state=str(self.state), folder=str(self.folder), devices=list(self.devices))
        return values


def view(workspace: Workspace, job_id: str, *, with_size: bool = True) -> JobView:
    """Return one job. Raises NotFoundError for an unknown id, WorkspaceError if its specification is damaged."""
    spec = load_spec(workspace, job_id)
    moment = time.monotonic()
    # A cluster that has not started the job for ten seconds is asked whether it still can.
    if phase_of(workspace.job(job_id)) == SUBMITTED and moment - _asked.setdefault(job_id, moment) > 10.0:
        _asked[job_id] = moment
        with suppress(ConfigError, ClusterError):
            control.settle(workspace, job_id)
    return _view(workspace, spec, Queue(workspace).positions, by_job, with_size=with_size)


def list_jobs(workspace: Workspace, kinds: Collection[str] | None = None) -> list[JobView]:
    """Return all jobs, or those of some kinds, newest first. A damaged specification is shown as a failed job."""
    queue = Queue(workspace)
    # Each is read once, and only if a job needs it.
    positions, living = cache(queue.positions), cache(by_job)
    views = []
    clean(workspace.jobs)
    queue.clear_dead()
    try:
        folders = list(workspace.jobs.glob("[!.]*"))
    except OSError as error:
        fault = disk_fault(error) or error.strerror
        raise WorkspaceError(f"{workspace.jobs} cannot be listed: {fault}.") from error
    for folder in folders:
        try:
            spec = read_spec(folder)
        except WorkspaceError as error:
            if (folder / "spec.json").exists():
                views.append(_damaged(folder, error))
            continue
        if kinds is None or spec.kind in kinds:
            views.append(_view(workspace, spec, positions, living))
    return _newest_first(views)


def _newest_first(views: Iterable[JobView]) -> list[JobView]:
    return sorted(views, key=lambda job: (job.sequence, job.created, job.id), reverse=True)


def list_active(workspace: Workspace) -> list[JobView]:
    """Return the active jobs, newest first. Reads only jobs with a ticket."""
    queue = Queue(workspace)
    queue.clear_dead()
    positions, living = cache(queue.positions), cache(by_job)
    views = []
    for job_id in queue.job_ids():
        with suppress(WorkspaceError):  # being submitted, or deleted
            views.append(_view(workspace, read_spec(workspace.jobs / job_id), positions, living))
    return _newest_first(job for job in views if job.active)


def _view(
    workspace: Workspace,
    spec: JobSpec,
    positions: Callable[[], dict[str, int]],
    living: Callable[[], dict[str, list[int]]],
    *,
    with_size: bool = False,
) -> JobView:
    """Return the view. ``living`` returns the processes of jobs by folder."""
    folder = workspace.jobs / spec.id
    # The lock is tested first: a job that ends in between has then written its end before its files are read, and
    # cannot appear as lost. One that is resumed in between would, so the lock is tested once more.
    held = is_held(folder / "alive.lock")
    files = JobFiles.read(folder)
    clock = time.time()
    state = derive(files, held, clock)
    if state.state is State.LOST and is_held(folder / "alive.lock"):
        files = JobFiles.read(folder)
        state = derive(files, True, clock)
    status = files.status or {}
    settled = state.state.active or status.get("phase") == "ended"
    if not settled and (left := living().get(os.path.realpath(folder))):
        state = derive(replace(files, worker_alive=True), False, clock)
        if files.stop_requested and not is_held(folder / "worker.lock"):
            # Supervisor and rank 0 were killed after the request to stop: no process is left that would answer it.
            send_signal(left, signal.SIGKILL)
    beat = files.current(files.heartbeat) or {}
    cluster = str(status.get("cluster") or "") if status else spec.cluster
    running = state.state in (State.RUNNING, State.STALLED, State.STOPPING)
    eta = beat.get("eta_s") if running else None
    if eta is not None and isinstance(beat.get("clock"), (int, float)):
        eta = max(0.0, float(eta) - max(0.0, clock - float(beat["clock"])))
    return JobView(
        id=spec.id,
        kind=spec.kind,
        name=spec.name,
        state=state.state,
        message=state.message or _waits_for(workspace, spec, state.state) or str(beat.get("message", "")),
        phase=str(beat.get("phase", "")),
        done=int(beat.get("done", 0)),
        total=int(beat.get("total", 0)),
        unit=str(beat.get("unit", "")),
        rate=beat.get("rate"),
        eta_s=eta,
        # Clusters have queues of their own.
        position=positions().get(spec.id, 1) if state.state is State.QUEUED and not cluster else None,
        attempt=files.attempt,
        created=spec.created,
        started=str(status.get("started", "")),
        ended=str(status.get("ended", "")),
        seconds=_seconds(status, beat, state.state, clock),
        failure=_with_tail(state.failure, folder),
        config=spec.config,
        inputs=spec.inputs,
        devices=tuple(status.get("devices", ())),
        has_model=(folder / "model").is_dir(),
        sequence=spec.sequence,
        folder=folder,
        size=folder_size(folder) if with_size else None,
        n_failures=int(beat.get("failures") or 0),
        cluster=cluster,
    )


def _with_tail(failure: dict[str, Any] | None, folder: Path) -> dict[str, Any] | None:
    """Return a failure without keys and with the end of the log, which only the supervisor adds."""
    if failure is None:
        return None
    tail = failure["log_tail"] if "log_tail" in failure else log_tail(folder / "worker.log")
    if isinstance(tail, str):  # in a record edited by hand
        tail = tail.splitlines()
    cleaned = {name: redact(str(failure[name])) for name in ("message", "hint") if failure.get(name)}
    return {**failure, **cleaned, "log_tail": [redact(str(line)) for line in tail]}


def _waits_for(workspace: Workspace, spec: JobSpec, state: State) -> str:
    """Return the message of a queued job whose dependencies have not ended."""
    if state is not State.QUEUED or not spec.after:
        return ""
    queue = Queue(workspace)
    pending = [job_id for job_id in spec.after if queue.pending(job_id)]
    return f"Starts after {' and '.join(pending)}." if pending else ""


def _damaged(folder: Path, error: WorkspaceError) -> JobView:
    """Return the view of a job with a damaged specification."""
    spec = JobSpec(id=folder.name, kind=folder.name.split("-")[0], name=folder.name, module="", config={}, created="",
                   sequence=0)  # fmt: skip
    shown = _view(Workspace(folder.parent.parent), spec, dict, dict)
    failure = {"kind": error.kind, "message": error.message, "hint": error.hint, "log_tail": []}
    return replace(shown, state=State.FAILED, message="", failure=failure)


def _seconds(status: dict[str, Any], beat: dict[str, Any], state: State, clock: float) -> float | None:
    """Return how long the attempt ran; for a lost one, until its last heartbeat."""
    if status.get("phase") == "ended":
        return status.get("seconds")
    began = status.get("started_clock")
    if not isinstance(began, (int, float)):
        return None
    if not state.active:
        clock = float(beat.get("clock", began))
    return round(max(0.0, clock - float(began)), 3)


def resolve_job(workspace: Workspace, text: str) -> str:
    """Return the job with this id, name (the newest) or unique prefix. ConfigError if several match, NotFoundError."""
    if is_name(text) and (workspace.jobs / text / "spec.json").is_file():
        return load_spec(workspace, text).id
    jobs = list_jobs(workspace)
    named = [job for job in jobs if job.name == text]
    return pick("job", text, named[:1] or jobs, none_yet="There is no such job yet.").id


def wait(
    workspace: Workspace,
    job_id: str,
    on_update: Callable[[JobView], None] | None = None,
    *,
    every_s: float = 0.5,
    timeout_s: float | None = None,
) -> JobView:
    """Wait until a job has ended, or for ``timeout_s``; return its last view. ``on_update`` gets each view."""
    began = time.monotonic()
    while True:
        job = view(workspace, job_id, with_size=False)
        if on_update is not None:
            on_update(job)
        if not job.active or (timeout_s is not None and time.monotonic() - began > timeout_s):
            return job
        time.sleep(every_s)
