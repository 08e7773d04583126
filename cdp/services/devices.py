"""Which devices a job asks for, from the settings ``gpus`` and ``gpu_ids`` and where it is to run."""

from __future__ import annotations

from functools import cache

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.jobs import DeviceRequest, Gpu, gpu_trouble, list_gpus, place
from cdp.jobs.ray import RayLauncher


@cache
def gpus() -> tuple[Gpu, ...]:
    """The GPUs of this machine. Asked once: a form is drawn again and again, and they do not come and go."""
    return tuple(list_gpus())


@cache
def trouble() -> str:
    """Return a sentence if this machine has GPUs that jobs may miss; empty otherwise. Asked once, like ``gpus``."""
    return gpu_trouble()


def request(workspace: Workspace, gpus: int | None, *, at_most: int | None = None, ids: str = "") -> DeviceRequest:
    """A CPU slot, or so many GPUs, at most ``at_most``. None means one GPU, the CPU where there is none.

    ``ids`` names GPUs by their UUIDs, separated by commas, and takes the place of a number. ConfigError where both
    contradict each other, where too many are named, or where a cluster has not what is asked for.
    """
    named = [part.strip() for part in ids.split(",") if part.strip()]
    cluster = place.current(workspace)
    if cluster:
        return _of_cluster(cluster, gpus, at_most, named)
    if named:
        if gpus is not None and gpus != len(named):
            raise ConfigError(f"gpus asks for {gpus}, and gpu_ids names {len(named)}.", hint="Set one of the two.")
        if at_most is not None and len(named) > at_most:
            raise ConfigError(f"This job runs on {at_most} GPU, and gpu_ids names {len(named)}.", hint="Name one.")
        return DeviceRequest.named(named)
    count = min(1, len(list_gpus())) if gpus is None else gpus
    if at_most is not None:
        count = min(count, at_most)
    return DeviceRequest.gpus(count) if count else DeviceRequest.cpu()


def _of_cluster(cluster: str, gpus: int | None, at_most: int | None, named: list[str]) -> DeviceRequest:
    if named:
        raise ConfigError("gpu_ids names GPUs of this machine, and the job is for a cluster.", hint="Set gpus instead.")
    if gpus == 0:
        return DeviceRequest.cpu()
    present = RayLauncher(cluster).gpus()
    count = min(1, present) if gpus is None else gpus
    if at_most is not None:
        count = min(count, at_most)
    if count > present:
        raise ConfigError(
            f"The job asks for {count} GPU{'s' * (count != 1)}, and the cluster at {cluster} has {present}.",
            hint="Ask for fewer, or for 0 to run on CPUs.",
        )
    return DeviceRequest.gpus(count) if count else DeviceRequest.cpu()
