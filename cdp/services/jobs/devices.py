"""Which devices a job asks for, from the settings ``gpus`` and ``gpu_ids`` and where it is to run."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.jobs import DeviceRequest, Gpu, gpu_trouble, list_gpus, place, ray_cluster
from cdp.jobs.place import Place


@cache
def gpus() -> tuple[Gpu, ...]:
    """The GPUs of this machine. Asked once: a form is drawn again and again, and they do not come and go."""
    return tuple(list_gpus())


@cache
def trouble() -> str:
    """Return a sentence if this machine has GPUs that jobs may miss; empty otherwise. Asked once, like ``gpus``."""
    return gpu_trouble()


def request(
    workspace: Workspace,
    gpus: int | None,
    *,
    at_most: int | None = None,
    ids: str = "",
    together: bool = False,
) -> DeviceRequest:
    """A CPU slot, or so many GPUs, at most ``at_most``. None means one GPU, the CPU where there is none.

    ``ids`` names GPUs by their UUIDs, separated by commas, and takes the place of a number. ConfigError where both
    contradict each other, where too many are named, or where no node of a cluster has what is asked for. For a training
    (``together``) it is what each Ray worker has, if the place asks for any; the cluster has to have room for all of
    them at once.
    """
    named = [part.strip() for part in ids.split(",") if part.strip()]
    where = place.current(workspace)
    if where.address:
        return _of_cluster(where if together else replace(where, workers=None), gpus, at_most, named)
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


def _of_cluster(where: Place, gpus: int | None, at_most: int | None, named: list[str]) -> DeviceRequest:
    if named:
        raise ConfigError("gpu_ids names GPUs of this machine, and the job is for a cluster.", hint="Set gpus instead.")
    ray_cluster.check(where.address)
    nodes = ray_cluster.list_nodes(where.address)
    count = where.gpus if where.gpus is not None else gpus
    if count is None:
        count = int(any(node.gpus for node in nodes))
    if at_most is not None:
        count = min(count, at_most)
    if where.workers and count > 1:
        raise ConfigError(f"A Ray worker uses one GPU, and {count} are asked for.", hint="Ask for more workers.")
    request = DeviceRequest.gpus(count) if count else DeviceRequest.cpu()
    cpus = where.cpus if where.cpus is not None else float(request.processes)
    ray_cluster.check_fits(where, count, cpus, nodes)
    if where.workers:
        ray_cluster.check_fit_together(where, count, cpus, nodes)
    return request
