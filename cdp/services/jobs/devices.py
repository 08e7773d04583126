"""Which devices a job asks for, from the settings ``gpus`` and ``gpu_ids``."""

from __future__ import annotations

from functools import cache

from cdp.base.errors import ConfigError
from cdp.jobs import DeviceRequest, Gpu, list_gpus


@cache
def gpus() -> tuple[Gpu, ...]:
    """The GPUs of this machine. Asked once: a form is drawn again and again, and they do not come and go."""
    return tuple(list_gpus())


def request(gpus: int | None, *, at_most: int | None = None, ids: str = "") -> DeviceRequest:
    """A CPU slot, or so many GPUs, at most ``at_most``. None means every GPU of this machine, the CPU without any.

    ``ids`` names GPUs by their UUIDs, separated by commas, and takes the place of a number. ConfigError where both
    contradict each other, or where too many are named.
    """
    named = [part.strip() for part in ids.split(",") if part.strip()]
    if named:
        if gpus is not None and gpus != len(named):
            raise ConfigError(f"gpus asks for {gpus}, and gpu_ids names {len(named)}.", hint="Set one of the two.")
        if at_most is not None and len(named) > at_most:
            raise ConfigError(f"This job runs on {at_most} GPU, and gpu_ids names {len(named)}.", hint="Name one.")
        return DeviceRequest.named(named)
    count = len(list_gpus()) if gpus is None else gpus
    if at_most is not None:
        count = min(count, at_most)
    return DeviceRequest.gpus(count) if count else DeviceRequest.cpu()
