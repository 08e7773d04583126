"""Measuring how fast a retriever trains and encodes here, before a test promises its time, by a few steps:
``python -m cdp.studies.speed <workspace> <corpus> <minilm/2> …``.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from cdp.base.config import TrainingConfig
from cdp.base.machine import keep_freed_memory
from cdp.base.workspace import Workspace
from cdp.corpus import iter_documents
from cdp.retrievers import resolve
from cdp.retrievers.encode import Encoding, embed, precision_for
from cdp.retrievers.load import kind_of
from cdp.studies.estimate import of_speed_key
from cdp.training.engine import Batches, Engine, StaticEngine, TransformerEngine
from cdp.training.heads import start_head
from cdp.training.loop import adamw, base_model, loss_for
from cdp.training.lower_layers import LowerLayers, freeze_below
from cdp.training.plan import Speed, complete
from cdp.training.tokens import tokenise

# Texts of a timed step of a transformer: seconds where minilm's test takes minutes. A static retriever takes a batch of
# its own size: most of its step is the table's, at any batch.
TEXTS = 32

# A step is repeated for so long, and at least so often, and the median counts: on a busy machine the fastest one
# promised half of what a test took.
REPEAT_S = 2.0
REPEATS = 3

# Words of a document that stand for its query.
WORDS = 12


def measure(workspace: Workspace, corpus: str, key: str) -> dict[str, Speed]:
    """Return the speed of ``estimate.speed_key`` on the first documents of a corpus (its id), on the CPU.

    With trained layers also that of the whole retriever: how fast it encodes, and of a training a third.
    """
    name, layers = of_speed_key(key)
    retriever = resolve(name, workspace)
    chosen: dict[str, Any] = {"query_set": "any", "retriever": name}
    if layers:
        chosen["trained_layers"] = layers
    settings = complete(TrainingConfig.from_dict(chosen), retriever)
    assert settings.learning_rate is not None

    model = base_model(retriever, settings, "cpu")
    static = StaticEngine.fits(model)
    texts = (static and settings.loop.batch_size) or TEXTS
    first = [document.content for document in islice(iter_documents(workspace, corpus), texts)]
    documents = list(islice(cycle(first), texts))  # as many as a batch, of however few
    queries = [" ".join(text.split()[:WORDS]) for text in documents]

    prompt = model.prompts["query"] or ""
    read: list[Any] = [tokenise(model, queries, prompt, role="query"), tokenise(model, documents)]
    start_head(model, retriever, read)
    encoding = Encoding("", "document", "", True, None, precision_for(model), kind_of(model))

    def texts_per_second() -> float:
        model.eval()
        return len(documents) / _typical(lambda: embed(model, documents, encoding, batch_size=128))

    whole = texts_per_second()

    with tempfile.TemporaryDirectory() as folder:
        if layers:
            freeze_below(model, layers)
            if LowerLayers.fits(model):
                lower = LowerLayers(model, layers, Path(folder), key)
                read = [lower.states(queries, prompt, read[0]), lower.states(documents, "", read[1])]
                model.lower_layers = lower

        batches = Batches(read[0], read[1], np.arange(len(documents)), np.ones(len(documents)))
        loss = loss_for(model)(settings.loop.scale or 20.0)
        engine: Engine = StaticEngine(model, batches, loss) if static else TransformerEngine(model, batches, loss)
        optimiser = adamw(model, settings.learning_rate, settings.loop.weight_decay)
        rows = np.arange(len(documents))

        model.train()

        def step() -> None:
            engine.backward(rows)
            optimiser.step()

        pairs = len(rows) / _typical(step)
        speeds = {key: Speed(pairs, texts_per_second())}
        if layers:
            speeds[name] = Speed(pairs / 3, whole)

    return speeds


def _typical(work: Callable[[], object]) -> float:
    """Return the median seconds of several calls, after one that is not timed: it loads what is used first."""
    work()
    took: list[float] = []
    while len(took) < REPEATS or sum(took) < REPEAT_S:
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return median(took)


if __name__ == "__main__":
    keep_freed_memory()  # as a study's worker does
    place, corpus_id, *keys = sys.argv[1:]
    found: dict[str, Speed] = {}
    for wanted in keys:
        found |= measure(Workspace(Path(place)), corpus_id, wanted)
    print(json.dumps({key: [speed.pairs_per_second, speed.texts_per_second] for key, speed in found.items()}))
