"""What kind of machine this is: figures of one kind may be compared, those of two may not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from cdp.base.machine import cpuinfo, n_processors, processor_of

# What decides how fast a matrix product is, the best first: the flag of /proc/cpuinfo, and our word.
FEATURES = {"amx_tile": "amx", "avx512_bf16": "avx512-bf16", "avx512f": "avx512", "avx2": "avx2", "asimd": "neon"}


@dataclass(frozen=True)
class Machine:
    """A processor by its name and its widest vector products, how many may be used, memory in GiB, and a GPU's name."""

    processor: str
    vectors: str
    processors: int
    memory_gib: int
    gpu: str = ""

    @property
    def kind(self) -> str:
        """The name of its file of results: ``amd-epyc-avx512-bf16-2-cores``."""
        words = re.sub(r"\((r|tm)\)|\bcpu\b|\bprocessor\b|\d+-core|@.*", " ", self.processor.lower())
        parts = [words, self.vectors, f"{self.processors} cores", self.gpu.lower()]
        return re.sub(r"[^a-z0-9]+", "-", " ".join(parts)).strip("-")

    def to_dict(self) -> dict[str, str | int]:
        return asdict(self)


def peak_mib() -> float:
    """Return the most memory that this process had, in MiB."""
    # ``ru_maxrss`` begins with the memory of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii").split()
    return int(status[status.index("VmHWM:") + 1]) / 1024


def this_machine(*, gpu: bool = False) -> Machine:
    """The machine that this runs on; with its graphics card only where the figures are of the card."""
    return Machine(
        *of_cpuinfo(cpuinfo()),
        n_processors(),
        round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        gpu_name() if gpu else "",
    )


def of_cpuinfo(info: str) -> tuple[str, str]:
    """(name, widest vector products) from the text of /proc/cpuinfo; what Python knows where it tells no name."""
    flags = re.search(r"^(?:flags|Features)\s*: (.+)$", info, re.MULTILINE)
    known = set(flags[1].split()) if flags else set()
    vectors = next((word for flag, word in FEATURES.items() if flag in known), "")
    return processor_of(info), vectors


def gpu_name() -> str:
    """What the driver calls the first card; empty without one."""
    if shutil.which("nvidia-smi") is None:
        return ""
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
    return asked.stdout.strip().splitlines()[0] if asked.returncode == 0 and asked.stdout.strip() else ""
