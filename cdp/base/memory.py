"""What glibc does with memory that this process has freed: keep it while training, give it back in between."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress


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
