"""Which product is fastest on this machine: measured once, for a few numbers of queries, and kept in the user's cache.

What a processor is called says little: the same name stands for several, and libraries choose their code by more than
it. So the product that a search would do is timed, in the thread's own processor seconds, which others' work on the
machine hardly changes. A wrong choice costs time and never changes a result.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np

from cdp.base.errors import CdpError, ConfigError
from cdp.base.workspace import now, read_json_or_none, user_cache, write_json
from cdp.retrievers.exact_search.blocks import Documents
from cdp.retrievers.exact_search.products import Buffers, make, numpy_blas, one_blas_thread
from cdp.retrievers.exact_search.threads import alone, processors

ROWS = {1: 4096, 4: 4096, 16: 4096, 64: 4096, 256: 1024, 1024: 1024}
"""How many documents each number of queries is timed with, as many as a block of a search has; a search goes by the
largest number that it has."""

DIM, REPEATS = 768, 4

STREAM_ROWS = 16384
"""Each time takes the next of so many documents, 48 MB: those of a search come from memory and not from a cache, which
one library makes more of than another."""

WORTH_MEASURING = 500_000_000
"""Multiplications of a search that takes about as long as measuring does."""

Seconds = Mapping[str, Mapping[str, float]]
"""By number of queries (as text) and kind of product."""

_MEASURING = threading.Lock()


def fastest(n_queries: int, work: int, first_pass: str, device: str) -> str:
    """The kind of product (``products.make``) for a search of so many multiplications. ConfigError for a pass that
    does not exist."""
    if first_pass not in ("auto", "float32", "bfloat16"):
        raise ConfigError(f"first_pass must be auto, float32 or bfloat16, not {first_pass!r}.")
    if device != "cpu":
        return "device"
    if first_pass == "bfloat16":
        return "bfloat16"
    kinds = eligible(first_pass)
    if len(kinds) == 1:
        return kinds[0]
    seconds = _known(processors(), measure=work >= WORTH_MEASURING)
    if seconds is None:  # too little work for the choice to matter
        return kinds[0]
    timed = seconds[str(max((n for n in ROWS if n <= n_queries), default=1))]
    return min(kinds, key=lambda kind: timed.get(kind, float("inf")))


def eligible(first_pass: str) -> list[str]:
    """The kinds whose error is known here. NumPy's BLAS only where it can be kept to one thread; bfloat16 only on
    processors that multiply it natively and add up in float32, as x86 ones do."""
    import torch

    kinds = ["numpy"] if numpy_blas().lib_controllers else []
    kinds.append("torch")
    if first_pass == "auto" and torch.cpu._is_avx512_bf16_supported():
        kinds.append("bfloat16")
    return kinds


def record() -> Path:
    """Where the times are kept: by machine, since several may share a home."""
    return user_cache() / "products.json"


@functools.cache
def machine(threads: int) -> str:
    """What the times hold for: the processor with all that it says it can do, the libraries, what these make of it
    (the environment can forbid instructions), and how many threads share its caches."""
    import torch

    libraries = [f"numpy {np.__version__}", f"torch {torch.__version__} {torch.backends.cpu.get_cpu_capability()}"]
    libraries += sorted({f"{lib.internal_api} {lib.version} {getattr(lib, 'architecture', '')}"
                         for lib in numpy_blas().lib_controllers})  # fmt: skip
    return "; ".join([_processor(), *libraries, f"{threads} threads"])


def _processor() -> str:
    text = f"{platform.machine()} {platform.processor()}"
    with suppress(OSError):  # Linux alone has this file
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first)}
        told = {name: fields.get(name, "") for name in ("model name", "cpu family", "model", "stepping", "flags")}
        digest = hashlib.sha256(repr(told).encode()).hexdigest()[:12]
        text = f"{told['model name'] or text} {digest}"
    return text


_kept: dict[str, Seconds] = {}


def _known(threads: int, *, measure: bool) -> Seconds | None:
    key = machine(threads)
    with _MEASURING:
        if key not in _kept:
            seconds = _read(key)
            if seconds is None and measure:
                seconds = alone(measured)
                _write(key, seconds)
            if seconds is None:
                return None
            _kept[key] = seconds
        return _kept[key]


def measured() -> Seconds:
    """Processor seconds of one product of each kind, the best of a few in turns."""
    none = (np.empty(0, np.int64), np.empty(0, np.int64))
    random = np.random.default_rng(0)
    stream = np.tile(random.standard_normal((1024, DIM), dtype=np.float32), (STREAM_ROWS // 1024, 1))
    seconds: dict[str, dict[str, float]] = {}
    kinds = eligible("auto")
    at = 0
    for n, rows in ROWS.items():
        queries = random.standard_normal((n, DIM), dtype=np.float32)
        ways = {kind: make(kind, queries, "cpu", Buffers()) for kind in kinds}
        times: dict[str, list[float]] = {kind: [] for kind in ways}
        for _ in range(REPEATS):
            for kind, product in ways.items():
                if times[kind] and min(times[kind]) > 3 * min(min(took, default=np.inf) for took in times.values()):
                    continue  # not worth waiting for again
                documents = Documents(stream[at : at + rows], 0)  # the conversion to bfloat16 is part of what it costs
                at = (at + rows) % STREAM_ROWS
                with one_blas_thread():
                    began = _clock()
                    scores = product.of(documents, none)
                    product.error(documents)
                    scores.above(np.full(n, 1e9, np.float32))
                    times[kind].append(_clock() - began)
        seconds[str(n)] = {kind: min(took) for kind, took in times.items()}
    return seconds


def _clock() -> float:
    fine = time.get_clock_info("thread_time").resolution < 1e-4
    return time.thread_time() if fine else time.perf_counter()


def _read(key: str) -> Seconds | None:
    with suppress(CdpError, RuntimeError, OSError):  # no home, no permission: it is measured in each process
        kept = read_json_or_none(record())
        entry = kept.get(key) if isinstance(kept, dict) else None
        if isinstance(entry, dict) and _whole(entry.get("seconds")):
            return cast(Seconds, entry["seconds"])
    return None


def _whole(seconds: Any) -> bool:
    """Whether a record, which anybody may have edited, has a time for every kind."""
    if not isinstance(seconds, dict) or set(seconds) != {str(n) for n in ROWS}:
        return False
    kinds = set(eligible("auto"))
    rows = list(seconds.values())
    return all(isinstance(row, dict) and kinds <= set(row) for row in rows) and all(
        isinstance(value, float) for row in rows for value in row.values()
    )


def _write(key: str, seconds: Seconds) -> None:
    with suppress(CdpError, RuntimeError, OSError):
        path = record()
        kept = read_json_or_none(path)
        kept = kept if isinstance(kept, dict) else {}
        write_json(path, {**kept, key: {"measured": now(), "seconds": seconds}})
