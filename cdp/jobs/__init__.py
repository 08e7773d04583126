"""Background jobs: submit, resume, stop, delete; a job as shown, listing, finding, waiting. Each has a supervisor.

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
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cdp.base.errors import ClusterError, ConfigError, WorkspaceError
from cdp.base.failures import failure_of
from cdp.base.locks import clean, is_held, staging, try_lock, wait_for_lock
from cdp.base.redaction import is_secret, redact
from cdp.base.text import pick
from cdp.base.worker import stop_grace_s
from cdp.base.workspace import Workspace, disk_fault, folder_size, is_name, new_id, now, write_json
from cdp.jobs import place
from cdp.jobs.devices import DeviceRequest, Gpu, cpu_slots, gpu_trouble, list_gpus
from cdp.jobs.launchers import own_process
from cdp.jobs.logs import follow_log, log_tail
from cdp.jobs.queue import Queue
from cdp.jobs.records import SUBMITTED, JobSpec, Status, discard, is_own, load_spec, phase_of, read_spec, write_spec
from cdp.jobs.state import JOB_VARIABLE, JobFiles, JobState, State, by_job, derive, has_lock, processes_of, send_signal

__all__ = [
    "DeviceRequest", "Gpu", "JobFiles", "JobSpec", "JobState", "JobView", "State", "changed", "cpu_slots", "delete",
    "derive", "follow_log", "gpu_trouble", "is_own", "list_active", "list_gpus", "list_jobs", "load_spec",
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
            settle(workspace, job_id)
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


def changed(workspace: Workspace) -> tuple[int, ...]:
    """Return what differs once a job was started, took its turn, ended or was deleted, by whichever process."""
    times = []
    # A job's folder and its ticket come and go with it, and a folder's time changes with what it holds.
    for folder in (workspace.jobs, Queue(workspace).folder):
        with suppress(OSError):
            times.append(folder.stat().st_mtime_ns)
    return tuple(times)


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


if TYPE_CHECKING:
    from cdp.jobs.ray import RayLauncher

# How long a supervisor may take to leave once the end of its job is recorded.
LEAVE_WITHIN_S = 10.0
CLEARED_WITHIN_S = 0.5


def submit(
    workspace: Workspace,
    *,
    kind: str,
    name: str,
    module: str,
    config: dict[str, Any],
    launcher: Literal["python", "accelerate"] = "python",
    device: DeviceRequest | None = None,
    inputs: Mapping[str, Any] | None = None,
    env_secrets: Mapping[str, str] | None = None,
    grace_s: float | None = None,
    after: Sequence[str] = (),
    uses_pool: bool = False,
) -> str:
    """Write the job's specification, start its supervisor, here or on the chosen cluster, and return its id.

    ``env_secrets`` reach the worker as environment variables; only their names are written, so that a resume can ask
    for them. An empty value hides a variable of this process from the worker. ``after`` names the job's dependencies:
    it keeps its place in the queue, starts when they have finished (or were stopped), and fails if one fails.
    ``grace_s`` is the time from a stop to a kill (default ``$CDP_STOP_GRACE_S`` or 30). ``uses_pool``: the worker uses
    ``Job.pool`` if it has one.

    Raises ConfigError for devices that the machine does not have, NotFoundError for an unknown dependency,
    WorkspaceError if the folder cannot be written or no process started.
    """
    cluster = place.current(workspace)
    device = device or DeviceRequest()
    _check(device, cluster)

    for other in after:
        load_spec(workspace, other)

    queue = Queue(workspace)
    queue.clear_dead()
    job_id = new_id(kind, name)
    spec = JobSpec(
        id=job_id,
        kind=kind,
        name=name or job_id,
        module=module,
        config=config,
        created=now(),
        sequence=time.time_ns(),
        launcher=launcher,
        device=device,
        inputs=dict(inputs or {}),
        secrets=tuple(sorted(name for name, value in (env_secrets or {}).items() if value and is_secret(name))),
        cwd=os.getcwd(),
        grace_s=stop_grace_s() if grace_s is None else grace_s,
        after=tuple(after),
        cluster=cluster,
        uses_pool=uses_pool,
    )

    final = workspace.job(job_id)
    with staging(workspace.jobs) as hidden:
        folder = hidden / job_id
        lock = wait_for_lock(folder / "alive.lock", "The job's folder", wait_s=5.0)

        try:
            Status.queued(folder, cluster, place.signature(cluster))
            write_spec(folder, spec)

            # Visible only now: a submitter killed before leaves no job.
            try:
                folder.rename(final)
            except OSError as error:
                raise WorkspaceError.refused(final, "made", error) from error

            queue.add(spec.sequence, job_id, device, after, cluster=bool(cluster))
            _start_supervisor(workspace, final, spec, lock, env_secrets or {}, cluster=cluster, attempt=1)
        except BaseException:
            with suppress(OSError):
                discard(workspace, final)

            queue.remove(job_id)
            raise
        finally:
            os.close(lock)

    return job_id


def resume(
    workspace: Workspace,
    job_id: str,
    *,
    env_secrets: Mapping[str, str] | None = None,
    needs: Collection[str] | None = None,
) -> int:
    """Start a new attempt of a job that has ended, from its last checkpoint; return the attempt's number.

    ConfigError if the job is still active, or needs a secret that neither ``env_secrets`` nor the environment has.
    ``needs``: those of its secrets that may be asked for; all if None.
    """
    spec = load_spec(workspace, job_id)
    folder = workspace.job(job_id)
    cluster = place.current(workspace)
    given = {**os.environ, **(env_secrets or {})}

    missing = [key for key in (spec.secrets if needs is None else needs) if not given.get(key)]
    if missing and not cluster:
        raise ConfigError(
            f"Job {job_id} needs {', '.join(missing)}, which is not set.",
            hint="Keys are never stored: give it again, or set it in the environment.",
        )

    _check(spec.device, cluster)
    lock = _lock_of_ended(folder, job_id, "resumed")

    try:
        queue = Queue(workspace)
        (folder / "stop.request").unlink(missing_ok=True)
        status = Status.queued(folder, cluster, place.signature(cluster))

        try:
            queue.remove(job_id)
            queue.add(time.time_ns(), job_id, spec.device, spec.after, cluster=bool(cluster))
            _start_supervisor(workspace, folder, spec, lock, env_secrets or {}, cluster=cluster, attempt=status.attempt)
        except (WorkspaceError, ClusterError) as error:
            queue.remove(job_id)
            status.ended("failed", failure=failure_of(error))
            raise
    finally:
        os.close(lock)

    return status.attempt


def stop(workspace: Workspace, job_id: str) -> bool:
    """Ask a job to save and end. Return False if it had ended already."""
    load_spec(workspace, job_id)
    folder = workspace.job(job_id)

    phase = phase_of(folder)
    if phase == "ended":
        return False
    if phase != SUBMITTED and not has_lock(folder):
        return _end_orphans(folder)

    write_json(folder / "stop.request", {"time": now()})

    # A supervisor that the cluster starts meanwhile finds the request.
    if phase == SUBMITTED and (
        status := _end_submitted(folder, "stopped", message="It was stopped before it started.")
    ):
        with suppress(ClusterError):
            if launcher := _launcher(status):
                launcher.stop(job_id, status.attempt)

    return True


def settle(workspace: Workspace, job_id: str) -> None:
    """Record the failure of a job that its cluster can no longer start. A silent cluster changes nothing."""
    status = Status.load(workspace.job(job_id))
    launcher = _launcher(status)
    if status.phase == SUBMITTED and launcher and (why := launcher.end_of(job_id, status.attempt)):
        hint = "Check with cluster show whether the cluster can run jobs, then resume the job."
        failure = {"kind": "cluster", "message": why, "hint": hint}
        if _end_submitted(workspace.job(job_id), "failed", failure=failure):
            Queue(workspace).remove(job_id)


def _launcher(status: Status) -> RayLauncher | None:
    """Return the client of the job's cluster; None for a cluster that only a stranger's workspace names."""
    return place.launcher(status.cluster) if place.is_chosen(status.cluster, status.values.get("signature")) else None


def _end_submitted(folder: Path, outcome: str, **values: Any) -> Status | None:
    """Record the end of a job that its cluster has yet to start; None if it has started or ended meanwhile."""
    lock = try_lock(folder / "alive.lock")
    if lock is None:
        return None
    try:
        status = Status.load(folder)
        if status.phase != SUBMITTED:
            return None
        status.ended(outcome, **values)
        return status
    finally:
        os.close(lock)


def delete(workspace: Workspace, job_id: str) -> None:
    """Delete a job that has ended, with everything it made. ConfigError if it is still active."""
    folder = workspace.jobs / load_spec(workspace, job_id).id
    lock = _lock_of_ended(folder, job_id, "deleted")
    try:
        try:
            discard(workspace, folder)
        except OSError as error:
            raise WorkspaceError(f"{folder} could not be deleted: {error.strerror or error}.") from error
        Queue(workspace).remove(job_id)
    finally:
        os.close(lock)


def _check(device: DeviceRequest, cluster: str) -> None:
    """Raise ConfigError or ClusterError if such a job cannot run there."""
    if cluster:
        place.launcher(cluster).check()
    else:
        device.check(list_gpus() if device.count else [])
        cpu_slots()


def _lock_of_ended(folder: Path, job_id: str, what: str) -> int:
    """Take ``alive.lock`` of a job that is not active and return its descriptor. Raises ConfigError if it is."""
    # A supervisor that has recorded the end is about to exit; a killed process keeps its locks until the kernel has
    # cleared it away, and testing a lock holds it for an instant.
    deadline = time.monotonic() + (LEAVE_WITHIN_S if phase_of(folder) == "ended" else CLEARED_WITHIN_S)
    while True:
        phase = phase_of(folder)
        if phase != SUBMITTED and not is_held(folder / "worker.lock"):
            lock = try_lock(folder / "alive.lock")
            if lock is not None:
                if phase != "ended":
                    _end_orphans(folder)
                return lock

        if phase == SUBMITTED or (time.monotonic() > deadline and has_lock(folder)):
            raise ConfigError(
                f"Job {job_id} is still active and cannot be {what}.",
                hint="Stop it first and wait until it has ended.",
            )

        time.sleep(0.01)


def _end_orphans(folder: Path) -> bool:
    """Kill the processes of a job that has neither supervisor nor rank 0. Return False if there were none."""
    # Nothing is lost: rank 0, which alone saves, had not started or has ended.
    orphans = processes_of(folder)
    deadline = time.monotonic() + LEAVE_WITHIN_S
    while (left := processes_of(folder)) and time.monotonic() < deadline:
        send_signal(left, signal.SIGKILL)
        time.sleep(0.02)
    return bool(orphans)


def _start_supervisor(
    workspace: Workspace,
    folder: Path,
    spec: JobSpec,
    lock: int,
    secrets: Mapping[str, str],
    *,
    cluster: str,
    attempt: int,
) -> None:
    """Start the supervisor in a session of its own and pass it the held lock."""
    if cluster:  # there it waits for the lock, which is released after this; until then the job's phase is SUBMITTED
        place.launcher(cluster).submit(folder, spec, attempt)
        return

    try:
        with open(folder / "supervisor.log", "ab") as log:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "cdp.jobs.supervisor", str(folder), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**own_process(workspace.root), **secrets, JOB_VARIABLE: str(folder)},
                start_new_session=True,
                close_fds=True,
                pass_fds=(lock,),
            )
    except OSError as error:
        raise WorkspaceError(
            f"No process could be started for the job: {error.strerror or error}.",
            hint="Is the machine out of memory or of processes?",
        ) from error

    def reap() -> None:
        """Reap the supervisor unless it outlives this process, and remove its ticket if it was killed."""
        supervisor.wait()
        queue = Queue(workspace)
        while folder.name in queue.job_ids() and not is_held(folder / "alive.lock"):
            queue.clear_dead()
            time.sleep(1.0)

    threading.Thread(target=reap, name="reap-supervisor", daemon=True).start()
