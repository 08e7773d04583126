"""The worker that indexes a corpus for searching: ``python -m cdp.workers.index <job folder>``.

Writes the embeddings of all documents, or BM25's index, to ``embeddings/`` of the workspace. A resume continues with
the first missing shard.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from cdp.base.config import IndexConfig
from cdp.base.job_kind import CORPUS, Device, JobKind, PreparedJob
from cdp.base.worker import Job, run
from cdp.base.workspace import Workspace
from cdp.corpus import load_manifest
from cdp.retrievers import bm25
from cdp.retrievers.api import Payer, record_failed
from cdp.retrievers.encode import PoolEncoder
from cdp.retrievers.resolve import is_loaded, resolve_any
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


def prepare(workspace: Workspace, config: IndexConfig, after: Sequence[str] = ()) -> PreparedJob:
    corpus = load_manifest(workspace, config.corpus).name
    found = resolve_any(config.retriever, workspace)
    if found is not None and found.origin == "folder":  # the worker may start in another one
        config = config.replace(retriever=found.source)
    return PreparedJob(config, f"{found.title if found else bm25.TITLE} on {corpus}")


def device(config: IndexConfig) -> Device:
    loads = is_loaded(config.retriever)
    return Device(None if loads else 0, at_most=1, pool=loads)


KIND = JobKind(
    "index", "Indexing documents", "A corpus, indexed for searching.", IndexConfig, main, prepare,
    inputs={"corpus": CORPUS}, device=device, once=("retriever", "corpus"), makes="index", command="search",
    repeats=False, order=110,
)  # fmt: skip


if __name__ == "__main__":
    run(main)
