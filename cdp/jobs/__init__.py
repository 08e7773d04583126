"""Background jobs: submit, follow, stop, resume. One supervisor process per job; files tell what it does.

::

    job_id = submit(workspace, kind="train", name="…", module="cdp.workers.training", config={…})
    view(workspace, job_id).state            # queued, running, stalled, stopping, stopped, finished, failed, lost
    stop(workspace, job_id)                  # saves a checkpoint, keeps the model
    resume(workspace, job_id)                # a new attempt, from the last checkpoint

Workers are started by module name; this room imports none of them.
"""

from __future__ import annotations

from cdp.jobs.control import cluster_of, delete, resume, stop, submit
from cdp.jobs.devices import DeviceRequest, Gpu, cpu_slots, gpu_trouble, list_gpus
from cdp.jobs.logs import follow_log, read_log
from cdp.jobs.place import choosing
from cdp.jobs.records import JobSpec, load_spec
from cdp.jobs.state import JobFiles, JobState, State, derive
from cdp.jobs.view import (
    JobView,
    list_active,
    list_jobs,
    resolve_job,
    view,
    wait,
)

__all__ = [
    "DeviceRequest",
    "Gpu",
    "JobFiles",
    "JobSpec",
    "JobState",
    "JobView",
    "State",
    "choosing",
    "cluster_of",
    "cpu_slots",
    "delete",
    "derive",
    "follow_log",
    "gpu_trouble",
    "list_active",
    "list_gpus",
    "list_jobs",
    "load_spec",
    "read_log",
    "resolve_job",
    "resume",
    "stop",
    "submit",
    "view",
    "wait",
]
