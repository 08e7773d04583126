"""This machine: processors and memory that this process may use, also in a container; freed memory that glibc keeps."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

CGROUPS, OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def cpuinfo() -> str:
    """The text of /proc/cpuinfo, empty where there is none."""
    return _text(Path("/proc/cpuinfo"))


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8")
    return ""


def processor_of(info: str) -> str:
    """The processor's name from the text of /proc/cpuinfo; what Python knows where it tells none."""
    name = re.search(r"^model name\s*: (.+)$", info, re.MULTILINE)
    return name[1].strip() if name else platform.processor() or platform.machine()


def n_processors() -> int:
    """How many processors this process may keep busy: those that it may run on, at most its container's share."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for group in _cgroups("cpu"):
        words = _text(group / "cpu.max").split()  # version 2: "150000 100000", or "max 100000"
        if not words:
            words = [
                _text(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")
            ]  # version 1; no limit: -1

        quota, period = (int(word) if word.isdigit() else 0 for word in words)
        if quota and period:
            allowed = min(allowed, math.ceil(quota / period))

    return allowed


def memory_bytes() -> int:
    """The memory that this process may use: the machine's, at most its container's."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for group in _cgroups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):  # of version 2 and 1
            limit = _text(group / name).strip()
            if limit.isdigit():  # else "max"
                found = min(found, int(limit))

    return found


def _cgroups(controller: str) -> Iterator[Path]:
    """The folders of the control group that this process is in, and of those around it, which limit it, too."""
    for line in _text(OWN_CGROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        root = CGROUPS / controller if controllers else CGROUPS
        if controllers and controller not in controllers.split(","):
            continue

        # A container may see its own folder as the root, and be told another path.
        own = root / path.strip("/")
        yield from (own, *(folder for folder in own.parents if folder.is_relative_to(root)))


@cache
def machine_name() -> str:
    """``AMD EPYC 7B13, 2 processors``."""
    return f"{processor_of(cpuinfo())}, {n_processors()} processor{'s' * (n_processors() > 1)}"


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed blocks instead of returning each large one to the kernel. True if it took it.

    Training on a CPU frees and asks for the same large tensors in every step; giving them back each time means that
    the kernel maps and zeroes the same pages over and over, which can cost more than the arithmetic.
    """
    if not sys.platform.startswith("linux"):
        return False

    try:
        libc = ctypes.CDLL("libc.so.6")
        m_trim_threshold, m_mmap_max = -1, -4
        return bool(libc.mallopt(m_mmap_max, 0)) and bool(libc.mallopt(m_trim_threshold, 2**31 - 1))
    except (OSError, AttributeError):
        return False


def return_freed_memory() -> None:
    """Give freed pages back to the kernel.

    Blocks of many sizes leave gaps in the heap, and each training after the first adds some: what is kept for the next
    step grows from training to training.
    """
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
