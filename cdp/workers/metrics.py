"""The job behind model-based measures (CE or stand-in, embedding diversity, Dist-Sim): sampling, kept for a resume.

    python -m cdp.workers.metrics <job folder>

``results/metrics.json``   ``measures``: what the models measured; ``scorer``
``checkpoints/*.f32``      values of documents as they are made: a stopped or failed job goes on where it was
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import MetricsConfig
from cdp.base.job_kind import QUERY_SET, JobKind
from cdp.base.worker import Job
from cdp.base.workspace import now, read_json_or_none, sha256_text, write_json
from cdp.metrics.measures.dist_sim import document_dist_sims
from cdp.metrics.measures.embedding_diversity import document_diversities
from cdp.metrics.measures.paraphrase_ratio import document_ratios
from cdp.metrics.query_set import ONE_QUERY, MetricValue, aggregate
from cdp.metrics.scorers import PairScorer, load_encoder, load_scorer

_DOCUMENTS_AT_ONCE = 256
_BATCHES_AT_ONCE = 32

Encode = Callable[[list[str]], NDArray[np.float64]]
# One value per document, (n_documents,).
Values = NDArray[np.float64]
# Queries by document's id.
Queries = Mapping[str, Sequence[str]]


def main(job: Job) -> None:
    """Measure the query set that the job's settings name."""
    config = MetricsConfig.from_dict(job.config)
    job.advance("reading", 0, 0, "documents")
    query_set = query_sets.load(job.workspace, config.query_set)
    documents, human, sampled_from, most = select(job, config)
    job.loading("the scorer")
    scoring = config.scoring

    scorer = load_scorer(scoring.scorer, job.workspace, threshold=config.threshold, batch_size=scoring.batch_size)
    if scorer.note:
        print(f"{scorer.measure.title} is used: {scorer.note}", flush=True)

    encode = lazy_encoder(job, config)
    values, _ = measure(job, config, documents, human, scorer, encode, sampled_from=sampled_from)
    diversities = _values(
        job, "diversity", "embedding queries", list(documents), list(documents.values()),
        (config.scoring.encoder, *_texts(documents.values())), lambda window: document_diversities(window, encode),
    )  # fmt: skip
    values.append(
        _value("embedding_diversity", diversities, config, documents, ONE_QUERY, model=config.scoring.encoder,
               sampled_from=sampled_from)
    )  # fmt: skip

    job.result(
        "metrics",
        {
            "query_set": config.query_set,
            "method": query_set.method or query_set.kind,
            "human": config.scoring.human,
            "config": config.to_dict(),
            "created": now(),
            # A sample may lack the documents with the most queries.
            "measures": [{**asdict(value), "per_doc": most} for value in values],
            "scorer": scorer_facts(scorer),
            "n_documents": len(documents),
            "failures": job.n_failures,
            "complete": query_set.complete,
            "query_set_hash": query_sets.content_hash(job.workspace, query_set),
            "sampled_from": sampled_from,
        },
    )

    job.progress("done", len(documents), len(documents), "documents")


def select(job: Job, config: MetricsConfig) -> tuple[Queries, Queries | None, int | None, int]:
    """Return the queries of the set's documents (of a sample if so configured), the human queries of these, where they
    are a sample the number of documents of the whole set, and Q/Doc: the most queries that a document of it gives."""
    documents: dict[str, Sequence[str]] = {}
    for line in query_sets.read_queries(job.workspace, config.query_set):
        if line.queries:
            documents[line.document_id] = line.queries[: config.per_doc]

    n, sampled_from = len(documents), None
    most = max(map(len, documents.values()), default=0)
    if config.max_documents is not None and config.max_documents < n:
        sampled_from, drawn = n, Random(config.scoring.seed).sample(range(n), config.max_documents)
        rows = list(documents.items())
        documents = dict(map(rows.__getitem__, sorted(drawn)))

    human = None
    if config.scoring.human:
        human = {}
        for line in query_sets.read_queries(job.workspace, config.scoring.human):
            if line.document_id in documents:
                human[line.document_id] = line.queries

    return documents, human, sampled_from, most


def measure(
    job: Job, config: MetricsConfig, documents: Queries, human: Queries | None, scorer: PairScorer, encode: Encode, *,
    name: str = "", sampled_from: int | None = None,
) -> tuple[list[MetricValue], Values]:  # fmt: skip
    """Measure CE, and Dist-Sim if there are human queries; return the values, and CE of each document.

    ``name`` tells several sets of one job apart.
    """
    ratios = score_pairs(job, config, scorer, documents, f"{name}-pairs".lstrip("-"))
    values = [
        _value(scorer.measure.name, ratios, config, documents, ONE_QUERY, model=scorer.model,
               threshold=scorer.threshold, sampled_from=sampled_from)
    ]  # fmt: skip

    if human is not None:
        similarities = compare_with_human(job, config, documents, human, encode, f"{name}-dist_sim".lstrip("-"))
        values.append(
            _value("dist_sim", similarities, config, documents, "No document has human queries.",
                   model=config.scoring.encoder, sampled_from=sampled_from)
        )  # fmt: skip

    return values, ratios


def _value(
    name: str, column: Values, config: MetricsConfig, documents: Queries, reason: str, **facts: Any
) -> MetricValue:
    """Return a measure from the documents' values; ``reason`` where it is undefined."""
    sizes = list(map(len, documents.values()))
    seed, per_doc = config.scoring.seed, max(sizes, default=0)
    return aggregate(name, column, n_queries=sum(sizes), per_doc=per_doc, reason=reason, seed=seed, **facts)


def scorer_facts(scorer: PairScorer) -> dict[str, Any]:
    """Return the scorer as results record it."""
    return {
        "measure": scorer.measure.name, "model": scorer.model, "threshold": scorer.threshold, "note": scorer.note
    }  # fmt: skip


def lazy_encoder(job: Job, config: MetricsConfig) -> Encode:
    """The model that embeds queries, loaded when the first window needs it and kept for all measures."""

    @cache
    def model() -> Encode:
        job.loading("the model")
        return load_encoder(config.scoring.encoder, job.workspace, batch_size=config.scoring.batch_size)

    return lambda texts: model()(texts)


def score_pairs(job: Job, config: MetricsConfig, scorer: PairScorer, documents: Queries, kept: str) -> Values:
    """Return the share of each document's query pairs that are paraphrases, kept on disk as ``kept``."""
    most = max(map(len, documents.values()), default=0)
    return _values(
        job, kept, "scoring pairs", list(documents), list(documents.values()),
        (scorer.measure.name, scorer.model, str(scorer.threshold), *_texts(documents.values())),
        lambda window: document_ratios(window, scorer.score, scorer.threshold),
        step=max(1, config.scoring.batch_size * _BATCHES_AT_ONCE // max(1, math.comb(most, 2))),
    )  # fmt: skip


def compare_with_human(
    job: Job, config: MetricsConfig, documents: Queries, human: Queries, encode: Encode, kept: str
) -> Values:
    """Return Dist-Sim of each document, NaN without human queries."""
    ids = [name for name in documents if human.get(name)]
    sides = [(documents[name], human[name]) for name in ids]
    found = _values(
        job, kept, "comparing with human queries", ids, sides,
        (config.scoring.encoder, *_texts(itertools.chain.from_iterable(sides))),
        lambda window: document_dist_sims(window, encode),
    )  # fmt: skip
    of_document = dict(zip(ids, found, strict=True))
    return np.array([of_document.get(name, np.nan) for name in documents])


def _texts(documents: Iterable[Sequence[str]]) -> Iterator[str]:
    # The empty text tells where a document ends.
    return (text for queries in documents for text in ("", *queries))


def _values(
    job: Job,
    kept: str,
    stage: str,
    ids: Sequence[object],
    items: Sequence[Any],
    fingerprint: Iterable[str],
    values_of: Callable[[list[Any]], Values],
    step: int = _DOCUMENTS_AT_ONCE,
) -> Values:
    """Return ``values_of`` the items, computed window by window, NaN for failed ones. Raises Stopped."""
    ledger = Ledger(job.folder / "checkpoints" / f"{kept}.f32", sha256_text(*fingerprint))
    failures = job.failures(stage, keep=ledger.done > 0)
    while ledger.done < len(items):
        start = ledger.done
        job.advance(stage, start, len(items), "documents")
        values = failures.batch(
            lambda window: list(values_of(window)),
            list(items[start : start + step]),
            lambda index, start=start: ids[start + index],  # type: ignore[misc]
            str,
        )
        ledger.append(values)

    job.progress(stage, len(items), len(items), "documents")
    return ledger.read()


class Ledger:
    """An append-only file of float32 numbers, tied to what they are results of.

    ``fingerprint`` names the work: the items in their order and the model. A file made for other work is begun again;
    a number torn by a crash is dropped.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        header, identity = path.with_suffix(".json"), {"fingerprint": fingerprint}
        if read_json_or_none(header) != identity:
            path.unlink(missing_ok=True)
            write_json(header, identity)
        self.done = path.stat().st_size // 4 if path.exists() else 0
        if self.done:
            os.truncate(path, 4 * self.done)

    def append(self, values: Sequence[float | None]) -> None:
        """Add values, None as NaN; they are on disk when this returns."""
        added = np.asarray(values, dtype="<f4")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "ab") as file:
            file.write(added.tobytes())
            file.flush()
            os.fsync(file.fileno())
        self.done += len(added)

    def read(self) -> Values:
        """All values so far: shape (done,)."""
        return np.fromfile(self._path, dtype="<f4").astype(np.float64) if self.done else np.zeros(0)


KIND = JobKind(
    "metrics", "Measuring queries", "The model-based measures of a query set.", MetricsConfig, main,
    called="Q-D metrics of {query_set}", inputs={"query_set": QUERY_SET, "human": QUERY_SET}, makes="measures",
    command="metrics", word="query_set", order=20,
)  # fmt: skip


if __name__ == "__main__":
    worker.run(main)
