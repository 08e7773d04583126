"""What a job may run on: a CPU slot, so many GPUs, or no device to speak of.

UUIDs rather than indices: an index changes meaning with ``CUDA_VISIBLE_DEVICES`` and after a reboot.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from cdp.base.errors import ConfigError

CPU_SLOTS_VARIABLE = "CDP_CPU_SLOTS"

# The queue's lanes. A granted CPU slot or light place has the lane's name; GPUs are told apart by their UUIDs.
CPU, LIGHT, GPU = "cpu", "light", "gpu"
# How many jobs that keep no processor busy run at once, beside those that do.
LIGHT_SLOTS = 4


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of this machine. ``memory_mb`` is its total memory in MiB, 0 if unknown."""

    uuid: str
    name: str
    memory_mb: int
    index: int

    @property
    def label(self) -> str:
        return f"{self.name}, {self.memory_mb / 1024:.0f} GiB" if self.memory_mb else f"{self.name}, memory unknown"


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """What a job asks for. Make one with ``cpu``, ``gpus`` or ``light``.

    ``count`` is the number of GPUs (0 means a CPU slot), ``processes`` how many worker processes share a CPU slot (on
    GPUs there is one per GPU). ``idle`` marks a job that mostly waits for a server's answers, or takes little: it does
    not wait for a processor either.
    """

    count: int = 0
    processes: int = 1
    idle: bool = False

    @classmethod
    def cpu(cls, processes: int = 1) -> Self:
        return cls(processes=processes)

    @classmethod
    def gpus(cls, count: int) -> Self:
        return cls(count=count, processes=count)

    @classmethod
    def light(cls) -> Self:
        return cls(idle=True)

    @property
    def lane(self) -> str:
        """The queue it waits in: ``gpu``, ``light`` or ``cpu``."""
        return GPU if self.count else LIGHT if self.idle else CPU

    def check(self, gpus: list[Gpu]) -> None:
        """ConfigError if this machine can never give what is asked."""
        if self.count < 0 or self.processes < 1:
            raise ConfigError("A job needs at least one process.")
        if self.count > len(gpus):
            raise ConfigError(
                f"The job asks for {self.count} GPU{'s' * (self.count != 1)}, and this machine offers {len(gpus)}.",
                hint="Ask for fewer, or for 0 to run on the CPU.",
            )

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.count, "processes": self.processes, "idle": self.idle}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        return cls(
            count=int(values.get("count", 0)),
            processes=int(values.get("processes", 1)),
            idle=bool(values.get("idle", False)),
        )


def list_gpus() -> list[Gpu]:
    """Return the GPUs of this machine that may be used; none where there is none.

    They come from ``nvidia-smi``, narrowed by ``CUDA_VISIBLE_DEVICES`` (indices or UUIDs). Where that leaves none on a
    machine that has an NVIDIA device, torch is asked.
    """
    return _from_smi() or (_from_torch() if _has_nvidia() else [])


def gpu_trouble() -> str:
    """Return a sentence if torch cannot use every GPU that ``nvidia-smi`` lists; empty otherwise."""
    if not _has_nvidia():
        return ""
    listed, usable = len(_from_smi()), len(_from_torch())
    if usable >= listed:
        return ""
    return (
        f"nvidia-smi lists {_gpus(listed)}, but torch can use {usable or 'none'}: is it a CPU build, or too new for "
        "the driver?"
    )


def _gpus(count: int) -> str:
    return f"{count} GPU{'s' * (count != 1)}"


def _from_smi() -> list[Gpu]:
    query = ["nvidia-smi", "--query-gpu=uuid,name,memory.total,index", "--format=csv,noheader,nounits"]
    gpus = []
    for line in _output(query, 20.0).splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 4 and fields[3].isdigit():
            # The memory is "[N/A]" or "[Not Supported]" where it is shared with the processor.
            gpus.append(Gpu(fields[0], fields[1], int(fields[2]) if fields[2].isdigit() else 0, int(fields[3])))
    wanted = _visible()
    if wanted is None:
        return gpus
    return [gpu for gpu in gpus if any(w == str(gpu.index) or gpu.uuid.startswith(w) for w in wanted)]


_ASK_TORCH = """
import json, torch
seen = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
print(json.dumps([[str(p.uuid), p.name, p.total_memory // 2**20] for p in seen]))
"""


@cache
def _from_torch() -> list[Gpu]:
    """Return the GPUs that torch can use. Asked once, in a process of its own: loading torch here takes memory."""
    try:
        found = json.loads(_output([sys.executable, "-c", _ASK_TORCH], 120.0).strip().splitlines()[-1])
    except (ValueError, IndexError):
        return []
    wanted = _visible() or []
    # torch numbers the devices in the order in which they are named, and MIG instances have no other name.
    names = [name if name.startswith(("GPU-", "MIG-")) else "" for name in wanted]
    names += [""] * (len(found) - len(names))
    return [
        Gpu(named or f"GPU-{uuid}", name, memory_mb, index)
        for index, ((uuid, name, memory_mb), named) in enumerate(zip(found, names, strict=False))
    ]


def _visible() -> list[str] | None:
    """Return the entries of ``CUDA_VISIBLE_DEVICES``; None if it is not set."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    return None if text is None else [entry.strip() for entry in text.split(",") if entry.strip()]


def _has_nvidia() -> bool:
    """Return whether there is an NVIDIA device or its tool, and the environment does not hide every GPU."""
    hidden = _visible() in ([], ["-1"])
    return not hidden and (shutil.which("nvidia-smi") is not None or os.path.exists("/dev/nvidiactl"))


def _output(command: list[str], timeout_s: float) -> str:
    """Return what a program prints; empty if it cannot be run or fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def cpu_slots() -> int:
    """How many CPU jobs may run at once: ``$CDP_CPU_SLOTS``, 1 if unset. ConfigError if it is not a number."""
    text = os.environ.get(CPU_SLOTS_VARIABLE, "").strip() or "1"
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"{CPU_SLOTS_VARIABLE} must be a whole number from 1, not {text!r}.")
    return int(text)
