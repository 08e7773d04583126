"""Submit, ask to stop, resume and delete jobs, each at once; killing what outlived its supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cdp.base.errors import ClusterError, ConfigError, WorkspaceError
from cdp.base.failures import failure_of
from cdp.base.locks import is_held, staging, try_lock, wait_for_lock
from cdp.base.redaction import is_secret
from cdp.base.worker import stop_grace_s
from cdp.base.workspace import Workspace, new_id, now, write_json
from cdp.jobs import place
from cdp.jobs.devices import DeviceRequest, cpu_slots, list_gpus
from cdp.jobs.launchers import python_path
from cdp.jobs.queue import Queue
from cdp.jobs.records import SUBMITTED, JobSpec, Status, discard, load_spec, phase_of, write_spec
from cdp.jobs.state import JOB_VARIABLE, has_lock, processes_of, send_signal

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
    device = device or DeviceRequest.cpu()
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
    environment = {
        **os.environ,
        **secrets,
        JOB_VARIABLE: str(folder),
        "PYTHONPATH": python_path(os.environ),
        "CDP_WORKSPACE": str(workspace.root),
        # Else Python imports from the current folder first, which may hold other people's files.
        "PYTHONSAFEPATH": "1",
    }
    try:
        with open(folder / "supervisor.log", "ab") as log:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "cdp.jobs.supervisor", str(folder), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
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
