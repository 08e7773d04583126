"""The worker that indexes a collection for searching: ``python -m cdp.workers.index <job folder>``.

Reads an ``IndexConfig``; writes the embeddings of all documents, or BM25's index, to ``embeddings/`` of the workspace,
and ``results/index.json``. A resume continues with the first missing shard.
"""

from __future__ import annotations

import time

from cdp.base.config import IndexConfig
from cdp.base.worker import Job, run
from cdp.retrievers.encode import PoolEncoder, Stopped
from cdp.serving.engine import Engine, memory_limit

SILENT_S = 300.0  # of loading a model, a call of the encoder, or building an index


def main(job: Job) -> None:
    began = time.perf_counter()
    config = IndexConfig.from_dict(job.config)

    def report(phase: str, done: int, total: int) -> None:
        if job.stop_requested():
            raise Stopped
        job.progress(phase, done, total, "documents" if total else "", next_within_s=SILENT_S)

    pool = PoolEncoder(job.pool.map, config.retriever) if job.pool else None
    engine = Engine(job.workspace, memory_limit(), None, device=None, download=True, progress=report, pool=pool)
    try:
        documents = len(engine.open(config.retriever, config.collection).documents)
    except Stopped:
        print("Stopped on request; the embeddings computed so far are kept.", flush=True)
        return
    seconds = round(time.perf_counter() - began, 3)
    job.result("index", {"documents": documents, "seconds": seconds})
    print(f"{documents:,} documents are indexed.", flush=True)
    job.progress("done", documents, documents, "documents")


if __name__ == "__main__":
    run(main)
