"""The worker that indexes a corpus for searching: ``python -m cdp.workers.index <job folder>``.

Reads an ``IndexConfig``; writes the embeddings of all documents, or BM25's index, to ``embeddings/`` of the workspace,
and ``results/index.json``. A resume continues with the first missing shard.
"""

from __future__ import annotations

import time

from cdp.base.config import IndexConfig
from cdp.base.worker import Job, run
from cdp.retrievers.api import Payer, record_failed
from cdp.retrievers.encode import PoolEncoder
from cdp.serving.engine import DenseIndex, SearchEngine, memory_limit


def main(job: Job) -> None:
    began = time.perf_counter()
    config = IndexConfig.from_dict(job.config)

    def report(phase: str, done: int, total: int) -> None:
        job.advance(phase, done, total, "documents" if total else "")

    pool = PoolEncoder(job.pool.map, config.retriever, None, job.stop_requested) if job.pool else None
    payer = Payer.of(job, config.budget)
    engine = SearchEngine(
        job.workspace, memory_limit(), device=None, download=True, progress=report, pool=pool, payer=payer
    )
    opened = engine.open(config.retriever, config.corpus)
    documents = len(opened.documents)
    if isinstance(opened.index, DenseIndex):
        rows = ((document.id, document.content) for document in opened.documents.take(range(documents)))
        record_failed(job, opened.index.encoder.model, rows)
    seconds = round(time.perf_counter() - began, 3)
    job.result("index", {"documents": documents, "seconds": seconds})
    print(f"{documents:,} documents are indexed.", flush=True)
    job.progress("done", documents, documents, "documents")


if __name__ == "__main__":
    run(main)
