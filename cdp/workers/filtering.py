"""The worker that filters queries (order of tests, reasons, cross-encoder scores):
``python -m cdp.workers.filtering <job folder>``.

Writes a new query set, whose manifest names its source and the filter, and ``results/filter.json`` with the number of
dropped queries by reason. Ranks and scores are stored beside the source, for other thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import FilterConfig
from cdp.base.errors import ConfigError
from cdp.base.job_kind import LIGHT, QUERY_SET, WHOLE_SET, Device, JobKind, PreparedJob, device_for
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, sha256_text
from cdp.corpus import iter_documents
from cdp.evaluation import round_trip
from cdp.metrics.scorers import load_cross_encoder
from cdp.query_sets import DocumentQueries, QuerySet, store
from cdp.query_sets.nonsense import REASONS, query_table
from cdp.retrievers.resolve import check_cross_encoder, is_loaded, resolve_any
from cdp.workers.metrics import Ledger
from cdp.workers.round_trip import ranks_of

BATCH = 64
BATCHES_AT_ONCE = 8


def main(job: Job) -> None:
    """Write the filtered set."""
    config = FilterConfig.from_dict(job.config)
    query_set = query_sets.load(job.workspace, config.query_set)
    if not query_set.complete:
        raise ConfigError(
            f"{query_set.name} is incomplete: later queries would be missing.",
            hint="Wait for its job, or resume it.",
        )

    reasons = _reasons(job, config, query_set)
    named, counts = np.unique(reasons[reasons != ""], return_counts=True)
    dropped = {str(name): int(n) for name, n in sorted(zip(named, counts, strict=True), key=lambda pair: -pair[1])}
    n = sum(dropped.values())
    keeps = iter((reasons == "").tolist())

    def change(document: DocumentQueries) -> list[str | None]:
        return [text if next(keeps) else None for text in document.queries]

    name = config.name or f"{query_set.name} {config.text}"
    facts = {"without": {"filter": config.text, "queries": n, "reasons": dropped}}
    made = query_sets.derive(job.workspace, query_set, change, name, facts).query_set
    lost = query_set.n_documents - made.n_documents
    job.result(
        "filter",
        {"query_set": made.id, "made_from": query_set.id, "filter": config.text, "n_queries": made.n_queries,
         "dropped": n, "reasons": dropped, "documents_without_queries": lost,
         "dropped_because": "; ".join(f"{reason}: {n:,}" for reason, n in dropped.items())},
    )  # fmt: skip

    print(f"{made.name}: {made.n_queries:,} queries, {n:,} left out", flush=True)

    for reason, dropped_n in dropped.items():
        print(f"  {reason}: {dropped_n:,}", flush=True)

    job.progress("done", made.n_queries, made.n_queries, "queries")


def _reasons(job: Job, config: FilterConfig, query_set: QuerySet) -> NDArray[np.str_]:
    """Return the first failed test of each query, (n,), empty for queries to keep."""

    reasons = np.full(query_set.n_queries, "", dtype="<U80")

    def fails(where: NDArray[np.bool_], reason: str) -> None:
        reasons[where & (reasons == "")] = reason

    if config.usable:
        job.progress("reading", 0, 0, "")
        table = query_table(job.workspace, query_set)
        for name, words in REASONS.items():
            fails(table.reasons == name, words)
    if config.round_trip_rank is not None:
        ranks = ranks_of(job, query_set, config.by, config.gpus)
        fails(ranks == 0, f"document not found within {round_trip.DEPTH}")
        fails(ranks > config.round_trip_rank, f"document found below rank {config.round_trip_rank}")
    if config.cross_encoder and config.at_least is not None:
        scores = cross_scores(job, query_set, config.cross_encoder, config.gpus)
        fails(np.isnan(scores), "no score by the cross-encoder")
        fails(scores < config.at_least, f"cross-encoder score below {config.at_least:g}")
    return reasons


def cross_scores(job: Job, query_set: QuerySet, model: str, gpus: int | None) -> NDArray[np.float32]:
    """Return a cross-encoder's score of each query with its document, (n,) in [0, 1], NaN for failures.

    A resumed job continues.
    """
    stored = store.load_scores(job.workspace, query_set, store.CROSS_ENCODER, model)
    if stored is not None:
        return np.asarray(stored.values, np.float32)

    job.loading("the cross-encoder")
    scorer = load_cross_encoder(model, job.workspace, batch_size=BATCH, device=device_for(gpus))
    fingerprint = sha256_text(model, query_sets.content_hash(job.workspace, query_set))

    ledger = Ledger(job.folder / "checkpoints" / "cross_encoder.f32", fingerprint)
    total = query_set.n_queries
    failures = job.failures("scoring queries", unit="query", keep=ledger.done > 0)
    pairs = islice(_pairs(job, query_set), ledger.done, None)
    while waiting := list(islice(pairs, BATCH * BATCHES_AT_ONCE)):
        start = ledger.done
        job.advance("scoring queries", start, total, "queries")
        scores = failures.batch(scorer, waiting, lambda index, start=start: start + index, "\n".join)  # type: ignore[misc]
        ledger.append(scores)

    values = np.asarray(ledger.read(), np.float32)
    store.save_scores(job.workspace, query_set, store.CROSS_ENCODER, model, values)

    return values


def _pairs(job: Job, query_set: QuerySet) -> Iterator[tuple[str, str]]:
    """Yield (query, its document's content) in the order of the set, which is the corpus's."""
    documents = iter_documents(job.workspace, query_set.corpus_id)
    for line in query_sets.read_queries(job.workspace, query_set.id):
        content = next((document.content for document in documents if document.id == line.document_id), "")
        for text in line.queries:
            yield text, content


def prepare(workspace: Workspace, config: FilterConfig, after: Sequence[str] = ()) -> PreparedJob:
    if config.round_trip_rank is not None:
        resolve_any(config.by, workspace)
    if config.cross_encoder:
        check_cross_encoder(workspace, config.cross_encoder)
    return PreparedJob(config)


def device(config: FilterConfig) -> Device:
    loads = bool(config.cross_encoder) or is_loaded(config.by)
    return Device(config.gpus, at_most=1) if loads else LIGHT


KIND = JobKind(
    "filter", "Filtering queries", "A query set without the queries that fail a test.", FilterConfig, main, prepare,
    called="Filter {query_set}: {config.text}", inputs={"query_set": WHOLE_SET}, device=device, makes=QUERY_SET,
    command="queries filter", word="query_set", order=40,
)  # fmt: skip


if __name__ == "__main__":
    worker.run(main)
