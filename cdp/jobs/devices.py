"""The devices of jobs: GPUs found, CPU slots, places for light jobs; what a job may ask for.

GPUs are identified by UUID: indices change with ``CUDA_VISIBLE_DEVICES`` and after a reboot.
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
from cdp.base.text import comma_list, counted

MAX_PROCESSES = 4096  # of a job, on any cluster

CPU_SLOTS_VARIABLE = "CDP_CPU_SLOTS"

# The queue's lanes. A granted CPU slot or light place has the lane's name, a GPU its UUID.
CPU, LIGHT, GPU = "cpu", "light", "gpu"
LIGHT_SLOTS = 4  # light jobs that run at once, beside the others

_ASK_TORCH = """
import json, torch
seen = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
print(json.dumps([[str(p.uuid), p.name, p.total_memory // 2**20] for p in seen]))
"""


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
    """The devices that a job asks for: without anything said, a CPU slot.

    ``count`` is the number of GPUs (0: a CPU slot), ``processes`` the number of worker processes (on GPUs one per GPU).
    ``idle`` marks a light job, which mostly waits for a server's answers: it does not queue for a processor.
    """

    count: int = 0
    processes: int = 1
    idle: bool = False

    @classmethod
    def gpus(cls, count: int) -> Self:
        return cls(count=count, processes=count)

    @property
    def lane(self) -> str:
        """The queue's lane: ``gpu``, ``light`` or ``cpu``."""
        return GPU if self.count else LIGHT if self.idle else CPU

    def check(self, gpus: list[Gpu]) -> None:
        """Raise ConfigError if this machine does not have these devices."""
        if self.count > len(gpus):
            raise ConfigError(
                f"The job asks for {counted(self.count, 'GPU')}, and this machine offers {len(gpus)}.",
                hint="Ask for fewer, or for 0 to run on the CPU.",
            )
        most = max(self.count, os.cpu_count() or 1, 2)
        if self.processes > most:
            raise ConfigError(f"The job asks for {self.processes:,} processes, and this machine is good for {most}.")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the request that a file holds. ValueError for numbers out of range."""
        request = cls(
            count=int(values.get("count", 0)),
            processes=int(values.get("processes", 1)),
            idle=bool(values.get("idle", False)),
        )
        if not (0 <= request.count <= MAX_PROCESSES and 1 <= request.processes <= MAX_PROCESSES):
            raise ValueError(f"it asks for {request.count:g} GPUs and {request.processes:g} processes")
        return request


def list_gpus() -> list[Gpu]:
    """Return the usable GPUs of this machine: those of ``nvidia-smi`` in ``CUDA_VISIBLE_DEVICES``, else torch's."""
    return _from_smi() or (_from_torch() if _has_nvidia() else [])


def gpu_trouble() -> str:
    """Return a sentence if torch cannot use every GPU of ``nvidia-smi``; empty otherwise."""
    if not _has_nvidia():
        return ""
    listed, usable = len(_from_smi()), len(_from_torch())
    if usable >= listed:
        return ""
    return (
        f"nvidia-smi lists {counted(listed, 'GPU')}, but torch can use {usable or 'none'}: is it a CPU build, or too "
        "new for the driver?"
    )


def _from_smi() -> list[Gpu]:
    query = ["nvidia-smi", "--query-gpu=uuid,name,memory.total,index", "--format=csv,noheader,nounits"]
    gpus = []
    for line in _output(query, 20.0).splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 4 and fields[3].isdigit():
            # Memory shared with the processor is "[N/A]" or "[Not Supported]".
            gpus.append(Gpu(fields[0], fields[1], int(fields[2]) if fields[2].isdigit() else 0, int(fields[3])))
    wanted = _visible()
    if wanted is None:
        return gpus
    return [gpu for gpu in gpus if any(w == str(gpu.index) or gpu.uuid.startswith(w) for w in wanted)]


@cache
def _from_torch() -> list[Gpu]:
    """Return the GPUs that torch can use, from a process of its own: torch takes memory.

    With ``-P``, else Python imports from the current folder first, which may hold other people's files.
    """
    try:
        found = json.loads(_output([sys.executable, "-P", "-c", _ASK_TORCH], 120.0).strip().splitlines()[-1])
    except (ValueError, IndexError):
        return []
    wanted = _visible() or []
    # torch numbers devices in the order of CUDA_VISIBLE_DEVICES, the only place with the names of MIG instances.
    names = [name if name.startswith(("GPU-", "MIG-")) else "" for name in wanted]
    names += [""] * (len(found) - len(names))
    return [
        Gpu(named or f"GPU-{uuid}", name, memory_mb, index)
        for index, ((uuid, name, memory_mb), named) in enumerate(zip(found, names, strict=False))
    ]


def _visible() -> list[str] | None:
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    return None if text is None else comma_list(text)


def _has_nvidia() -> bool:
    """Return True if there is an NVIDIA device or its tool, unless the environment hides every GPU."""
    hidden = _visible() in ([], ["-1"])
    return not hidden and (shutil.which("nvidia-smi") is not None or os.path.exists("/dev/nvidiactl"))


def _output(command: list[str], timeout_s: float) -> str:
    """Return a program's output; empty if it fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def cpu_slots() -> int:
    """Return the number of CPU jobs that run at once: ``$CDP_CPU_SLOTS``, 1 if unset. Raises ConfigError."""
    text = os.environ.get(CPU_SLOTS_VARIABLE, "").strip() or "1"
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"{CPU_SLOTS_VARIABLE} must be a whole number from 1, not {text!r}.")
    return int(text)
