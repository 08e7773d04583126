"""A few real training steps, timed: ``python -m cdp.training.measure <settings as JSON>`` prints one JSON record with
the ``plan`` and what was ``measured``.

A process of its own, because it loads torch and a model, and because its peak memory is then that of the training. The
steps are the first ones of the run that is planned; nothing is written and no weights are kept.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.failures import Failures, failure_of
from cdp.base.staging import scratch
from cdp.base.workspace import Workspace
from cdp.retrievers import load
from cdp.training.pairs import BatchOrder
from cdp.training.plan import Measured, TrainingData, on_device, order_of, plan_of, prepare

WARM_UP = 1
STEPS = 3


class _Watch:
    """Hooks that note when each step ended, and stop after the last one wanted."""

    def __init__(self, steps: int) -> None:
        self.ends: list[float] = []
        self.steps = steps

    def log(self, step: int, **values: float | int | None) -> None:
        """Nothing is logged."""

    def progress(self, step: int, steps: int, message: str) -> None:
        self.ends.append(time.perf_counter())

    def stop_requested(self) -> bool:
        return len(self.ends) >= self.steps


def measure(data: TrainingData, steps: int = STEPS) -> Measured:
    """Load the model, take one step to warm up and ``steps`` more, and say what they took."""
    whole = data.settings
    order = order_of(whole, len(data.pairs))
    rows = np.unique(np.concatenate([r for r, _ in zip(order.batches(), range(WARM_UP + steps), strict=False)]))
    data = data.part(rows)
    part, config = data.pairs, whole.replace(save_steps=2**31, ri_mode="online")
    free = free_memory()

    began = time.perf_counter()
    import torch

    from cdp.training.engine import Batches
    from cdp.training.loop import Training, add_lora
    from cdp.training.optimiser import keep_freed_memory
    from cdp.training.tokens import stores_of

    on_gpu = config.gpus != 0 and torch.cuda.is_available()
    if on_gpu:
        free, total = torch.cuda.mem_get_info()
    else:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        keep_freed_memory()
    config = on_device(config, data.retriever, "cuda" if on_gpu else "cpu")
    model = load(data.retriever, "cuda" if on_gpu else "cpu", config.max_length)
    loaded = time.perf_counter()
    part, usable, (queries, documents, reasoned) = stores_of(model, part, Failures())
    tokenised = time.perf_counter()
    if config.lora_rank is not None:
        add_lora(model, config.lora_rank)
    watch = _Watch(WARM_UP + steps)
    short = BatchOrder(len(part), order.global_rows, WARM_UP + steps, config.seed)
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        weights = data.weights[usable]
        batches = Batches(
            queries, documents, part.document_of, weights, reasoned, part.negatives, part.swapped, part.teacher
        )
        Training(model, batches, short, config, watch, Path(folder), keep=False).run()
    durations = np.diff(watch.ends)
    texts = len(part.queries) + len(part.reasoned or ()) + len(part.documents)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Measured(
        device=torch.cuda.get_device_name() if on_gpu else "CPU",
        steps=len(durations),
        load_seconds=loaded - began,
        tokenise_seconds_per_text=(tokenised - loaded) / texts,
        step_seconds=float(np.median(durations)),
        memory_peak=torch.cuda.max_memory_allocated() if on_gpu else resident,
        memory_free=free,
        memory_total=total,
        trained_parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
    )


def free_memory() -> int:
    """Bytes that may still be used: of the machine, or of the container where that has a limit of its own."""
    import psutil

    free = int(psutil.virtual_memory().available)
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            most, now = (int((Path("/sys/fs/cgroup") / name).read_text()) for name in (limit, used))
        except (OSError, ValueError):
            continue
        free = min(free, max(0, most - now))
    return free


def main(arguments: list[str]) -> int:
    """0 and the record on stdout, or 2 and one sentence on stderr."""
    if len(arguments) != 1:
        print("usage: python -m cdp.training.measure <settings as JSON>", file=sys.stderr)
        return 2
    try:
        workspace = Workspace.default()
        data = prepare(TrainingConfig.from_dict(json.loads(arguments[0])), workspace)
        plan = plan_of(data, workspace)
        print(json.dumps({"plan": plan.to_dict(), "measured": asdict(measure(data))}))
    except (CdpError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        failure = failure_of(error)
        print(f"{failure['message']} {failure['hint']}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
