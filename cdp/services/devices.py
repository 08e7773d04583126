"""Which device a job asks for, from the ``gpus`` of its configuration."""

from __future__ import annotations

from cdp.jobs import DeviceRequest, list_gpus


def request(gpus: int | None, *, at_most: int | None = None) -> DeviceRequest:
    """A CPU slot, or so many GPUs, at most ``at_most``. None means every GPU of this machine, the CPU without any."""
    count = len(list_gpus()) if gpus is None else gpus
    if at_most is not None:
        count = min(count, at_most)
    return DeviceRequest.gpus(count) if count else DeviceRequest.cpu()
