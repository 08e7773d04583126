"""What is freed is kept while a training runs, and given back between the trainings of a study."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Large blocks with a small one after each that stays: gaps in the heap, as tensors of many sizes leave them.
_GAPS = """
import ctypes
import numpy as np
from cdp.base.machine import keep_freed_memory, return_freed_memory

def anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))

assert keep_freed_memory()
before = anonymous()
large, small = [], []
for _ in range(200):
    large.append(np.ones(1 << 17))
    small.append(np.ones(1 << 7))
del large
print(anonymous() - before)
return_freed_memory()
print(anonymous() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's settings")
def test_freed_memory_is_kept_until_it_is_returned() -> None:
    ran = subprocess.run([sys.executable, "-c", _GAPS], capture_output=True, text=True, check=True)

    kept, returned = (int(line) for line in ran.stdout.split())
    assert kept > 180 << 10
    assert returned < 20 << 10
