"""The processor that this runs on, by its name and how many of it may be used: times of one machine compare."""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path


def cpuinfo() -> str:
    """The text of /proc/cpuinfo, empty where there is none."""
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8") if path.exists() else ""


def processor_of(info: str) -> str:
    """The processor's name from the text of /proc/cpuinfo; what Python knows where it tells none."""
    name = re.search(r"^model name\s*: (.+)$", info, re.MULTILINE)
    return name[1].strip() if name else platform.processor() or platform.machine()


def n_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def machine_name() -> str:
    """``AMD EPYC 7B13, 2 processors``."""
    return f"{processor_of(cpuinfo())}, {n_processors()} processor{'s' * (n_processors() > 1)}"
