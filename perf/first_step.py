"""How long from submitting a training to its first step?

The demo's 46 documents with the queries that are shipped for them, static-minilm, on the processor: what a person waits
for after pressing the button, before the first loss is drawn. Nearly all of it is Python importing libraries. The peer
is ``import sentence_transformers`` in a fresh Python on the same machine, in turns with ours: the least that a training
script which uses the library pays before its own first line.

    python -m perf.first_step
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace
from cdp.services import demo, jobs, queries
from perf.timing import Row, of_times, seconds, show

GOAL_S = 8.0
REPEATS = 2
POLL_S = 0.01


def run() -> list[Row]:
    """One row: seconds of ours and of the import, medians of interleaved repeats."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder) / "workspace")
        demo.load(workspace)
        query_set = queries.list_query_sets(workspace)[0].id
        first_step(workspace, query_set), _import()  # what is read from the disk once is not measured
        ours, peer = [], []
        for _ in range(REPEATS):
            ours.append(first_step(workspace, query_set))
            peer.append(seconds(_import))

    print(f"ours {sorted(round(t, 2) for t in ours)} s, the import {sorted(round(t, 2) for t in peer)} s")
    return [
        of_times(
            "from submit to the first training step, against import sentence_transformers", ours, peer, goal=GOAL_S
        )
    ]


def first_step(workspace: Workspace, query_set: str) -> float:
    """Seconds from the call that submits a training until its first step is on the disk."""
    config = TrainingConfig(query_set=query_set, retriever="static-minilm", gpus=0, epochs=1)
    began = time.perf_counter()
    job_id = jobs.start(workspace, "training", config)
    metrics = workspace.job(job_id) / "metrics.jsonl"
    while not (metrics.is_file() and metrics.stat().st_size):
        if not jobs.show(workspace, job_id, with_size=False).active:
            raise RuntimeError(f"The training {job_id} ended before its first step.")
        time.sleep(POLL_S)
    elapsed = time.perf_counter() - began
    jobs.wait(workspace, job_id)
    return elapsed


def _import() -> None:
    subprocess.run([sys.executable, "-c", "import sentence_transformers"], check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    show(run())
