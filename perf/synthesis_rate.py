"""Documents per second of a synthesis run against an endpoint with a fixed latency, beside the ideal rate.

``python -m perf synthesis_rate``: 2,000 documents, answers after 200 ms, 32 requests at once. The ideal is that
the endpoint is never idle: latency × documents ÷ concurrency. The worker is a process of its own, as in a job, and so
is the endpoint.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from cdp.base.workspace import REPOSITORY, Workspace, new_id, read_json, write_json
from cdp.corpus import read_documents, store
from perf.timing import Row, of_ratios, show
from tests.synthesis.server import KEY, MODEL, chat_server

DOCUMENTS = 2000
LATENCY_S = 0.2
CONCURRENCY = 32
TARGET = 0.85
REPEATS = 3


def run() -> list[Row]:
    """One row: our rate, the ideal one, and their ratio over the repeats."""
    ideal = LATENCY_S * DOCUMENTS / CONCURRENCY
    context = multiprocessing.get_context("spawn")
    ours, child = context.Pipe()
    endpoint = context.Process(target=_serve, args=(child,), daemon=True)
    endpoint.start()

    try:
        url = ours.recv()
        times = sorted(_seconds(url) for _ in range(REPEATS))
    finally:
        ours.send("stop")
        endpoint.join()

    print(f"{', '.join(f'{t:.2f}' for t in times)} s; ideal {ideal:.2f} s")
    middle = times[len(times) // 2]

    return [
        {
            "name": f"synthesis of {DOCUMENTS:,} documents at {LATENCY_S * 1000:.0f} ms and {CONCURRENCY} at once",
            "ours": DOCUMENTS / middle,
            "peer": DOCUMENTS / ideal,
            "unit": "documents/s",
            "target": TARGET,
            **of_ratios([ideal / time for time in times]),
        }
    ]


def _serve(pipe: Connection) -> None:
    with chat_server(latency=LATENCY_S) as server:
        pipe.send(server.url)
        pipe.recv()


def _seconds(url: str) -> float:
    """How long the run itself says that it took, without the start of its process."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder) / "workspace")
        path = Path(folder) / "documents.jsonl"
        path.write_text(
            "".join(
                json.dumps({"_id": f"d{i}", "text": f"Thing{i} works because wheel {i} turns. " * 20}) + "\n"
                for i in range(DOCUMENTS)
            )
        )

        with read_documents(path) as result:
            corpus = store(result, "rate", workspace)

        job = new_id("synthesis")
        config = {"corpus": corpus.id, "generator": "openai", "model": MODEL, "base_url": url, "per_doc": 5}
        spec = {"id": job, "kind": "synthesis", "config": {**config, "concurrency": CONCURRENCY}}
        write_json(workspace.job(job) / "spec.json", spec)
        command = [sys.executable, "-m", "cdp.workers.synthesis", str(workspace.job(job))]
        environment = {**os.environ, "CDP_API_KEY": KEY, "CDP_BASE_URL": url}
        subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.DEVNULL)

        outcome = read_json(workspace.job(job) / "results" / "synthesis.json")
        if outcome["n_documents"] != DOCUMENTS:
            raise RuntimeError(f"Only {outcome['n_documents']} documents have queries.")

        return float(outcome["seconds"])


if __name__ == "__main__":
    show(run())
