"""How far is the planner's estimate from what runs take that fit on this machine?

Rates are measured as ``cdp plan --measure`` does it; then each stage does several times as much by the same functions
as a job, and the ratio is what was estimated by what it took. The start of a job's processes is left out on both sides.

    python -m perf.planner            seconds of the clock: for a machine that does nothing else
    python -m perf.planner --cpu      seconds of one processor: for a busy one
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace
from cdp.evaluation import bm25
from cdp.metrics.query_set import measure_query_set
from cdp.planning.rates import Basis, Observation, rate_of
from cdp.planning.scale import scale_plan
from cdp.planning.stages import UNITS
from cdp.planning.workload import CPU, Hardware, Model, Workload, Writer
from cdp.query_sets import import_queries
from cdp.retrievers import PRESETS, load, resolve
from cdp.retrievers.encode import Encoding, encode
from cdp.retrievers.exact_search import search
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators.template import TemplateGenerator
from cdp.synthesis.methods import METHODS
from cdp.training.data import prepare
from cdp.training.measure import measure
from cdp.workers import rates
from perf.timing import Row

DOCUMENTS, QUERIES, RETRIEVER = 1400, 2000, "static-minilm"
LIGHT, MANY = ("reading", "search", "bm25"), 40_000
"""Stages that are done with so few documents before their fixed tenths of a second are over, and what they get."""


def run() -> list[Row]:
    """A row per stage: estimated and taken."""
    import torch

    torch.set_num_threads(1)
    observed: rates.Observed = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        rates.measure_all(Path(folder), "", observed)
        taken = _taken(Path(folder))
    known = {
        key: rate
        for key, rows in observed.items()
        if (stage := key.partition("/")[0]) in UNITS
        and (rate := rate_of([Observation(*row) for row in rows], UNITS[stage], Basis.HERE, "here"))  # type: ignore[arg-type]
    }
    documents = rates.some_documents(MANY)
    characters = sum(len(d.content) for d in documents) / MANY
    defaults = PRESETS[RETRIEVER].defaults
    model = Model(RETRIEVER, PRESETS[RETRIEVER].dimensions, 0, int(defaults["epochs"].value), 128)
    work = Workload(DOCUMENTS, characters, rates.PER_DOC, 60.0, QUERIES, model, Writer("template", "processor"))
    one = {key: dataclasses.replace(rate, cpus=1) for key, rate in known.items()}
    few = scale_plan(work, Hardware(cpus=1), one).stages
    many = scale_plan(dataclasses.replace(work, documents=MANY), Hardware(cpus=1), one).stages
    stages = [b if b.name in LIGHT else a for a, b in zip(few, many, strict=True)]
    rows = [_row(stage.name, stage.span, taken[stage.name]) for stage in stages]
    _show(rows)
    return [{**row, "unit": "s", "target": 1.0} for row in rows]


def _taken(folder: Path) -> dict[str, float]:
    """Seconds of each stage, done in full."""
    documents, workspace = rates.some_documents(DOCUMENTS), Workspace(folder / "taken")
    source, method = TemplateGenerator(), METHODS[rates.METHOD]
    took: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        made = work()
        took[name] = time.perf_counter() - began
        return made

    many = rates.some_documents(MANY)
    timed("reading", lambda: rates.stored(Workspace(folder / "many"), folder, many))
    corpus = rates.stored(workspace, folder, documents)
    queries = timed("synthesis", lambda: [generate_for(d, method, rates.PER_DOC, source).queries for d in documents])
    pairs = [(d.id, list(own)) for d, own in zip(documents, queries, strict=True)]
    timed("measures", lambda: measure_query_set(pairs))
    query_set = import_queries(pairs, workspace, corpus, name="taken").query_set.id
    data = prepare(TrainingConfig(query_set=query_set, retriever=RETRIEVER, gpus=0), workspace)
    steps = len(data.pairs) // 128 * (data.settings.epochs or 1)
    loading = timed("training", lambda: measure(data, steps - 1)).load_seconds
    took["training"] -= loading
    model, encoding = load(resolve(RETRIEVER, workspace), CPU), Encoding("", "document")
    vectors = timed("encoding", lambda: encode(model, [d.content for d in documents], encoding))
    draw = np.random.default_rng(0)
    asked, rows = (draw.standard_normal((n, vectors.shape[1]), dtype=np.float32) for n in (QUERIES, MANY))
    timed("search", lambda: search(asked, rows, 100))
    timed("bm25", lambda: bm25.index([d.content for d in many]))
    return took


def _row(name: str, span: Any, took: float) -> Row:
    low, high = span.low or span.seconds, span.high or span.seconds
    return {"name": name, "ours": span.seconds, "peer": took, "ratio": span.seconds / took,
            "spread": [low / took, high / took]}  # fmt: skip


def _show(rows: list[Row]) -> None:
    print(f"{'':12} {'estimated':>10} {'taken':>10} {'ratio':>7}  interval")
    for row in rows:
        low, high = row["spread"]
        print(f"{row['name']:12} {row['ours']:9.2f}s {row['peer']:9.2f}s {row['ratio']:7.2f}  {low:.2f} to {high:.2f}")
    whole = sum(row["ours"] for row in rows), sum(row["peer"] for row in rows)
    print(f"{'all':12} {whole[0]:9.2f}s {whole[1]:9.2f}s {whole[0] / whole[1]:7.2f}")


if __name__ == "__main__":
    if "--cpu" in sys.argv[1:]:
        time.perf_counter = time.process_time  # of this process's threads, whoever else is at work
    run()
