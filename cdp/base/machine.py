"""This machine: its processor and how many of it may be used (times compare by them); memory that glibc keeps."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
from contextlib import suppress
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
