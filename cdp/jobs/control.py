"""What people do with jobs: submit, stop, resume, delete. Each returns at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cdp.base.errors import ClusterError, ConfigError, NotFoundError, WorkspaceError
from cdp.base.failures import failure_of
from cdp.base.locks import is_held, try_lock, wait_for_lock
from cdp.base.redaction import is_secret
from cdp.base.workspace import Workspace, new_id, now, read_json_or_none, write_json
from cdp.jobs import place, processes
from cdp.jobs.devices import DeviceRequest, cpu_slots, list_gpus
from cdp.jobs.launchers import python_path
from cdp.jobs.queue import Queue
from cdp.jobs.ray import RayLauncher
from cdp.jobs.records import (
    LAUNCHERS,
    NEW,
    SUBMITTED,
    JobSpec,
    Status,
    discard,
    load_spec,
    read_record,
    remove_leftovers,
)

GRACE_VARIABLE = "CDP_STOP_GRACE_S"
# How long a supervisor may take to leave once the end of its job is recorded.
LEAVE_WITHIN_S = 10.0


def submit(
    workspace: Workspace,
    *,
    kind: str,
    name: str,
    module: str,
    config: dict[str, Any],
    launcher: str = "python",
    device: DeviceRequest | None = None,
    inputs: Mapping[str, Any] | None = None,
    env_secrets: Mapping[str, str] | None = None,
    grace_s: float | None = None,
    after: Sequence[str] = (),
    spreads: bool = False,
) -> str:
    """Write the job down, start its supervisor, here or on the cluster of the place, and return its id.

    ``env_secrets`` reach the worker as environment variables and are written nowhere; only their names are, so that a
    resume knows what to ask for; an empty value keeps a variable of this process from the worker. ``after`` names jobs
    that it builds on: it keeps its place in the queue but starts only when they have finished (or were stopped, with
    what they had), and fails if one of them fails. ``grace_s`` is how long a stop may take before it becomes a kill
    (default ``$CDP_STOP_GRACE_S`` or 30). ``spreads`` says that the worker uses ``Job.spread`` where it has one.

    ConfigError if the machine cannot give the device, NotFoundError for an unknown job in ``after``, WorkspaceError if
    the job's folder cannot be written or no process can be started.
    """
    cluster = place.current(workspace)
    device = device or DeviceRequest.cpu()
    if launcher not in LAUNCHERS:
        raise NotFoundError("launcher", launcher, known=LAUNCHERS)
    _check(device, cluster)
    for other in after:
        load_spec(workspace, other)
    queue = Queue(workspace)
    queue.clear_dead()
    remove_leftovers(workspace)
    sequence = queue.next_sequence()
    job_id, folder, lock = _new_folder(workspace, kind, name)
    try:
        spec = JobSpec(
            id=job_id,
            kind=kind,
            name=name or job_id,
            module=module,
            config=config,
            created=now(),
            sequence=sequence,
            launcher=launcher,
            device=device,
            inputs=dict(inputs or {}),
            secrets=tuple(sorted(name for name, value in (env_secrets or {}).items() if value and is_secret(name))),
            cwd=_current_folder(),
            grace_s=_grace() if grace_s is None else grace_s,
            after=tuple(after),
            cluster=cluster,
            spreads=spreads,
        )
        Status.queued(folder, cluster)
        write_json(folder / "spec.json", spec.to_dict())
        folder = _appear(folder, workspace.job(job_id))
        queue.add(sequence, job_id, device, after, cluster=bool(cluster))
        _start_supervisor(workspace, folder, spec, lock, env_secrets or {}, cluster=cluster, attempt=1)
    except BaseException:
        with suppress(OSError):
            discard(folder)
        queue.remove(job_id)
        raise
    finally:
        os.close(lock)
    return job_id


def resume(workspace: Workspace, job_id: str, *, env_secrets: Mapping[str, str] | None = None) -> int:
    """Start a new attempt of a job that has ended: its worker goes on from the last checkpoint. The attempt's number.

    ConfigError if the job is still active, or if it needs a secret that neither ``env_secrets`` nor the environment
    has.
    """
    spec = load_spec(workspace, job_id)
    folder = workspace.job(job_id)
    cluster = cluster_of(workspace, job_id)
    given = {**os.environ, **(env_secrets or {})}
    missing = [key for key in spec.secrets if not given.get(key)]
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
        status = Status.queued(folder, cluster)
        try:
            queue.remove(job_id)
            queue.add(queue.next_sequence(), job_id, spec.device, spec.after, cluster=bool(cluster))
            _start_supervisor(workspace, folder, spec, lock, env_secrets or {}, cluster=cluster, attempt=status.attempt)
        except (WorkspaceError, ClusterError) as error:
            queue.remove(job_id)
            status.ended("failed", failure=failure_of(error))
            raise
    finally:
        os.close(lock)
    return status.attempt


def stop(workspace: Workspace, job_id: str, *, at_once: bool = False) -> bool:
    """Ask a job to save what it has and end; with ``at_once`` kill it without waiting.

    True if the job was active and will end, False if it had ended already. Asking twice does no harm.
    """
    load_spec(workspace, job_id)
    folder = workspace.job(job_id)
    if _has_ended(folder):
        return False
    if not processes.has_lock(folder) and not _is_submitted(folder):
        return _end_orphans(folder)
    write_json(folder / "stop.request", {"time": now(), "now": at_once})
    if _is_submitted(folder):
        _withdraw(folder, job_id)
    return True


def _is_submitted(folder: Path) -> bool:
    return (read_record(folder / "status.json") or {}).get("phase") == SUBMITTED


def _withdraw(folder: Path, job_id: str) -> None:
    """Record the end of a stopped job that the cluster has not begun; one that begins meanwhile finds the request."""
    lock = try_lock(folder / "alive.lock")
    if lock is None:
        return
    try:
        status = Status.load(folder)
        if status.phase == SUBMITTED:
            status.ended("stopped", message="It was stopped before it started.")
            with suppress(ClusterError):
                RayLauncher(status.cluster).stop(job_id, status.attempt)
    finally:
        os.close(lock)


def settle(workspace: Workspace, job_id: str) -> None:
    """Record the failure of a job that its cluster can no longer start. A silent cluster changes nothing."""
    folder = workspace.job(job_id)
    status = Status.load(folder)
    if status.phase != SUBMITTED or not (why := RayLauncher(status.cluster).end_of(job_id, status.attempt)):
        return
    lock = try_lock(folder / "alive.lock")
    if lock is None:
        return
    try:
        status = Status.load(folder)
        if status.phase == SUBMITTED:
            hint = "Can the cluster run jobs? cluster show tells. Then resume the job."
            status.ended("failed", failure={"kind": "cluster", "message": why, "hint": hint})
            Queue(workspace).remove(job_id)
    finally:
        os.close(lock)


def delete(workspace: Workspace, job_id: str) -> None:
    """Delete a job that has ended, with everything it made. ConfigError if it is still active."""
    folder = workspace.jobs / load_spec(workspace, job_id).id
    lock = _lock_of_ended(folder, job_id, "deleted")
    try:
        remove_leftovers(workspace)
        try:
            discard(folder)
        except OSError as error:
            raise WorkspaceError(f"{folder} could not be deleted: {error.strerror or error}.") from error
        Queue(workspace).remove(job_id)
    finally:
        os.close(lock)


def _check(device: DeviceRequest, cluster: str) -> None:
    """Raise ConfigError or ClusterError if such a job cannot run there, as far as that is known now."""
    if cluster:
        RayLauncher(cluster).check()
    else:
        device.check(list_gpus() if device.count else [])
        cpu_slots()


def cluster_of(workspace: Workspace, job_id: str) -> str:
    """Return where a resume of the job would run: where that is chosen now, else where the attempt before ran."""
    chosen = place.chosen()
    if chosen is not None:
        return chosen
    spec = load_spec(workspace, job_id)
    status = read_record(workspace.job(job_id) / "status.json")
    return str(status.get("cluster") or "") if status and "attempt" in status else spec.cluster


def _current_folder() -> str:
    """Where relative paths start; "" if that folder has been deleted under us."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _grace() -> float:
    text = os.environ.get(GRACE_VARIABLE, "").strip() or "30"
    try:
        return max(0.0, float(text))
    except ValueError:
        raise ConfigError(f"{GRACE_VARIABLE} must be a number of seconds, not {text!r}.") from None


def _new_folder(workspace: Workspace, kind: str, name: str) -> tuple[str, Path, int]:
    """A hidden folder that nobody else has, with its held lock: ids made in the same second may collide.

    Whoever tidies up may take it away in the instant before it is locked: then another is made.
    """
    for _ in range(100):
        job_id = new_id(kind, name)
        folder = workspace.jobs / f"{NEW}{workspace.job(job_id).name}"
        if workspace.job(job_id).exists():
            continue
        try:
            folder.mkdir(parents=True)
            lock = wait_for_lock(folder / "alive.lock", "The job's folder", wait_s=5.0)
            if _is_there(lock, folder / "alive.lock"):
                return job_id, folder, lock
            os.close(lock)
        except FileExistsError:
            continue
        except OSError as error:
            raise WorkspaceError.refused(folder, "made", error) from error
    raise WorkspaceError(f"There is no free name for a job in {workspace.jobs}.")


def _is_there(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one of that path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _appear(folder: Path, as_job: Path) -> Path:
    """Show a job's folder under its own name, now that it is whole: a submitter killed before left nothing visible."""
    try:
        folder.rename(as_job)
    except OSError as error:
        raise WorkspaceError.refused(as_job, "made", error) from error
    return as_job


def _has_ended(folder: Path) -> bool:
    status = read_json_or_none(folder / "status.json")
    return isinstance(status, dict) and status.get("phase") == "ended"


def _lock_of_ended(folder: Path, job_id: str, what: str) -> int:
    """Return the held ``alive.lock`` of a job that is not active.

    A supervisor that has recorded the end needs a moment to leave, and whoever asks whether the lock is held has it
    for an instant: both are waited for.
    """
    deadline = time.monotonic() + (LEAVE_WITHIN_S if _has_ended(folder) else 0.0)
    path = folder / "alive.lock"
    while True:
        if _is_submitted(folder):
            raise ConfigError(f"Job {job_id} is still active and cannot be {what}.", hint="Stop it first.")
        lock = None if is_held(folder / "worker.lock") else try_lock(path)
        if lock is not None and not _has_ended(folder):
            _end_orphans(folder)
        if lock is not None:
            return lock
        if time.monotonic() > deadline and (is_held(path) or is_held(folder / "worker.lock")):
            raise ConfigError(
                f"Job {job_id} is still active and cannot be {what}.",
                hint="Stop it first and wait until it has ended.",
            )
        time.sleep(0.01)


def _end_orphans(folder: Path) -> bool:
    """Kill what is left of a job that has neither supervisor nor worker: nobody else will. Whether there was any.

    Nothing is lost: the worker's first rank, which alone saves, had not begun or has ended.
    """
    orphans = processes.processes_of(folder)
    deadline = time.monotonic() + LEAVE_WITHIN_S
    while (left := processes.processes_of(folder)) and time.monotonic() < deadline:
        processes.send(left, signal.SIGKILL)
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
    """Start the supervisor in a session of its own and hand it the held lock: at no moment is the job without.

    On a cluster it waits for the lock, which is released after this; until it begins, the job's phase says so.
    """
    if cluster:
        RayLauncher(cluster).submit(folder, spec, attempt)
        return
    environment = {
        **os.environ,
        **secrets,
        processes.VARIABLE: str(folder),
        "PYTHONPATH": python_path(os.environ),
        "CDP_WORKSPACE": str(workspace.root),
        # Else Python imports first from the current folder, which may be a stranger's workspace.
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
    # It may outlive this process; where it does not, someone has to collect it, or it would stay as a zombie.
    threading.Thread(
        target=_collect, args=(workspace, folder, supervisor), name="collect-supervisor", daemon=True
    ).start()


def _collect(workspace: Workspace, folder: Path, supervisor: subprocess.Popen[bytes]) -> None:
    """Wait for a supervisor. One that was killed could not give back its place in the queue: done once all is over."""
    supervisor.wait()
    queue = Queue(workspace)
    while folder.name in queue.job_ids() and not is_held(folder / "alive.lock"):
        queue.clear_dead()
        time.sleep(1.0)
