"""The worker that ranks queries' own documents (at 1, 10, 100): ``python -m cdp.workers.round_trip <job folder>``.

The ranks are stored beside the query set, keyed by its content; ``results/round-trip.json`` has the share of queries
that find their document among the first 1, 10 and 100.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import RoundTripConfig
from cdp.base.errors import InputError
from cdp.base.job_kind import LIGHT, QUERY_SET, Device, JobKind, PreparedJob, device_for
from cdp.base.worker import Job
from cdp.base.workspace import Workspace
from cdp.corpus import iter_documents, load_manifest
from cdp.evaluation import round_trip
from cdp.query_sets import QuerySet, store
from cdp.retrievers import bm25, load, model_hash, resolve
from cdp.retrievers.encode import EmbeddingStore, cast, precision_for
from cdp.retrievers.resolve import is_loaded, resolve_any

SHOWN = (1, 10, round_trip.DEPTH)


def main(job: Job) -> None:
    """Measure the query set, unless it was measured with this retriever before."""
    config = RoundTripConfig.from_dict(job.config)
    query_set = query_sets.load(job.workspace, config.query_set)
    ranks = ranks_of(job, query_set, config.by, config.gpus)
    shares = {f"within_{k}": round(float(round_trip.within(ranks, k).mean()), 4) for k in SHOWN}
    job.result("round-trip", {"query_set": query_set.id, "by": config.by, "n_queries": len(ranks), **shares})
    print(f"{shares['within_10']:.1%} of {len(ranks):,} queries find their document within 10", flush=True)
    job.progress("done", len(ranks), len(ranks), "queries")


def ranks_of(job: Job, query_set: QuerySet, by: str, gpus: int | None = None) -> NDArray[np.int32]:
    """Return the round-trip rank of each query, stored or measured now."""
    stored = store.load_scores(job.workspace, query_set, store.ROUND_TRIP, by)
    if stored is not None:
        return np.asarray(stored.values, np.int32)

    job.progress("reading", 0, 0, "")

    numbers: dict[str, int] = {}
    documents: list[str] = []
    for document in iter_documents(job.workspace, query_set.corpus_id):
        numbers[document.id] = len(documents)
        documents.append(document.content)

    texts: list[str] = []
    own: list[int] = []
    together: list[list[int]] = []
    for line in query_sets.read_queries(job.workspace, query_set.id):
        texts += line.queries
        own += [numbers.get(line.document_id, -1)] * len(line.queries)
        together += [[numbers.get(name, -1) for name in line.together]] * len(line.queries)

    if not texts:
        raise InputError(f"The query set {query_set.name} has no queries yet.", hint="Generate or import some first.")

    positions = np.array(own, np.int64)
    width = max(map(len, together))

    others = np.array([row + [-1] * (width - len(row)) for row in together], np.int64) if width else None
    language = bm25.language_in(by)
    if language is not None:
        language = language or load_manifest(job.workspace, query_set.corpus_id).counted_language
        ranks = round_trip.by_bm25(texts, documents, positions, language, others=others, watch=job.advance)
    else:
        retriever = resolve(by, job.workspace)
        job.loading("the model")
        model = load(retriever, device_for(gpus))
        identity, precision = model_hash(model), precision_for(model)
        ranks = round_trip.by_model(
            cast(model, precision), texts, documents, positions, precision, store=EmbeddingStore(job.workspace),
            model_hash=identity, others=others, watch=job.advance,
        )  # fmt: skip

    store.save_scores(job.workspace, query_set, store.ROUND_TRIP, by, ranks)
    return ranks


def prepare(workspace: Workspace, config: RoundTripConfig, after: Sequence[str] = ()) -> PreparedJob:
    resolve_any(config.by, workspace)
    return PreparedJob(config)


KIND = JobKind(
    "round-trip", "Measuring round-trip ranks", "At which rank each query finds the document it was written for.",
    RoundTripConfig, main, prepare, called="Round trip of {query_set} by {config.by}", inputs={"query_set": QUERY_SET},
    once=("query_set", "by"), device=lambda config: Device(config.gpus, at_most=1) if is_loaded(config.by) else LIGHT,
    makes="measures", command="queries round-trip", word="query_set", order=30,
)  # fmt: skip


if __name__ == "__main__":
    worker.run(main)
