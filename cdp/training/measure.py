"""A few real training steps, timed: ``python -m cdp.training.measure <settings as JSON>`` prints one JSON record.

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
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from cdp.config import TrainingConfig
from cdp.errors import CdpError
from cdp.training.pairs import BatchOrder, PairSet, load_pairs
from cdp.training.plan import Measured
from cdp.training.reasoning import with_reasoned
from cdp.training.retrievers import load, resolve
from cdp.training.settings import complete
from cdp.training.weights import pair_weights, weighting_named
from cdp.workspace import Workspace

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


def measure(config: TrainingConfig, workspace: Workspace, steps: int = STEPS) -> Measured:
    """Load the model, take one step to warm up and ``steps`` more, and say what they took."""
    retriever = resolve(config.retriever, workspace)
    config = replace(complete(config, retriever), save_steps=2**31, ri_mode="online")
    pairs = load_pairs(workspace, config.query_set, per_doc=config.per_doc, max_documents=config.max_documents)
    if weighting_named(config.weighting).needs == "reasoning":
        pairs = with_reasoned(pairs, workspace, config.reasoning)
    weights = pair_weights(pairs, config.weighting, kappa=config.kappa, file=config.weights)
    order = BatchOrder(len(pairs), config.batch_size or 1, config.epochs or 1, config.seed)
    rows = np.unique(np.concatenate([r for r, _ in zip(order.batches(), range(WARM_UP + steps), strict=False)]))
    part, weights = _part(pairs, rows), weights[rows]

    began = time.perf_counter()
    import torch

    from cdp.training.engine import Batches
    from cdp.training.loop import Training
    from cdp.training.lora import add_lora
    from cdp.training.optimiser import keep_freed_memory
    from cdp.training.tokens import tokenise

    device = "cpu" if config.gpus == 0 or not torch.cuda.is_available() else "cuda"
    if device == "cpu":
        keep_freed_memory()
    model = load(retriever, device, config.max_length)
    loaded = time.perf_counter()
    queries, documents, reasoned = (
        None if texts is None else tokenise(model, texts, model.prompts[role] or "")
        for role, texts in (("query", part.queries), ("document", part.documents), ("query", part.reasoned))
    )
    tokenised = time.perf_counter()
    assert queries is not None
    assert documents is not None
    if config.lora_rank is not None:
        add_lora(model, config.lora_rank)
    watch = _Watch(WARM_UP + steps)
    short = BatchOrder(len(part), order.global_rows, WARM_UP + steps, config.seed)
    with tempfile.TemporaryDirectory() as folder:
        batches = Batches(queries, documents, part.document_of, weights, reasoned)
        Training(model, batches, short, config, watch, Path(folder), keep=False).run()
    taken = np.diff(watch.ends)
    texts = len(part.queries) + len(part.documents)
    on_gpu = device == "cuda"
    return Measured(
        device=torch.cuda.get_device_name() if on_gpu else "CPU",
        steps=len(taken),
        load_seconds=loaded - began,
        tokenise_seconds_per_text=(tokenised - loaded) / texts,
        step_seconds=float(np.median(taken)),
        memory_peak=torch.cuda.max_memory_allocated()
        if on_gpu
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        memory_total=torch.cuda.mem_get_info()[1]
        if on_gpu
        else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        trained_parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
    )


def _part(pairs: PairSet, rows: np.ndarray) -> PairSet:
    """Only these pairs and their documents."""
    documents, document_of = np.unique(pairs.document_of[rows], return_inverse=True)
    return replace(
        pairs,
        queries=[pairs.queries[row] for row in rows],
        documents=[pairs.documents[document] for document in documents],
        document_of=document_of.astype(np.int64),
        query_ids=[pairs.query_ids[row] for row in rows],
        reasoned=None if pairs.reasoned is None else [pairs.reasoned[row] for row in rows],
    )


def main(arguments: list[str]) -> int:
    """0 and the record on stdout, or 2 and one sentence on stderr."""
    if len(arguments) != 1:
        print("usage: python -m cdp.training.measure <settings as JSON>", file=sys.stderr)
        return 2
    try:
        config = TrainingConfig.from_dict(json.loads(arguments[0]))
        print(json.dumps(asdict(measure(config, Workspace.default()))))
    except (CdpError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
