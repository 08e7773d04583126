"""The job behind the model-based measures of a query set: CE (or its stand-in), embedding diversity and Dist-Sim.

    python -m cdp.workers.metrics <job folder>

Settings are ``MetricsConfig``. What it writes:

``results/metrics.json``   ``measures``: what the models measured, at the full Q/Doc;
                           ``values``: every value, CE and Self-BLEU at each M, the quick measures too;
                           ``per_document``: columns; ``scorer``
``checkpoints/*.f32``      values of documents as they are made: a stopped or failed job goes on where it was
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import MetricsConfig
from cdp.base.worker import Job
from cdp.base.workspace import now, sha256_text
from cdp.metrics.measures.dist_sim import document_dist_sims
from cdp.metrics.measures.embedding_diversity import document_diversities
from cdp.metrics.measures.paraphrase_ratio import document_ratios
from cdp.metrics.query_set import ONE_QUERY, MetricValue, depths_of, measure_query_set, reservoir
from cdp.metrics.report import Ledger, Selection, per_document_columns, value_of
from cdp.metrics.scorers import PairScorer, load_encoder, load_scorer
from cdp.query_sets import QuerySet

_DOCUMENTS_AT_ONCE = 256
_BATCHES_AT_ONCE = 32

Encode = Callable[[list[str]], NDArray[np.float64]]
# (n_documents, width)
Values = NDArray[np.float64]


def main(job: Job) -> None:
    """Measure the query set that the job's settings name."""
    config = MetricsConfig.from_dict(job.config)
    job.advance("reading", 0, 0, "documents")
    query_set = query_sets.load(job.workspace, config.query_set)
    content_hash = query_sets.content_hash(job.workspace, query_set)
    selection = select(job, config, query_set)
    job.loading("the scorer")
    scorer = load_scorer(config.scorer, job.workspace, threshold=config.threshold, batch_size=config.batch_size)
    if scorer.note:
        print(f"{scorer.measure.title} is used: {scorer.note}", flush=True)
    encode = lazy_encoder(job, config)
    measured = measure(job, config, selection, scorer, encode)
    selection, values, columns = measured.selection, measured.values, measured.columns
    diversities = embed(job, config, selection, encode)
    values.append(
        value_of("embedding_diversity", diversities, selection, selection.most, reason=ONE_QUERY, model=config.encoder,
                 seed=config.seed)
    )  # fmt: skip
    columns["embedding_diversity"] = diversities
    job.result(
        "metrics",
        {
            "query_set": config.query_set,
            "human": config.human,
            "config": config.to_dict(),
            "language": selection.language,
            "created": now(),
            "measures": [asdict(v) for v in values if v.per_doc == selection.most],
            "values": [asdict(v) for v in (*measured.quick, *values)],
            "per_document": per_document_columns(selection.ids, columns),
            "scorer": scorer_facts(scorer),
            "n_documents": len(selection.ids),
            "failures": job.n_failures,
            "complete": query_set.complete,
            "query_set_hash": content_hash,
            "sampled_from": selection.sampled_from,
        },
    )
    job.progress("done", len(selection.ids), len(selection.ids), "documents")


def select(job: Job, config: MetricsConfig, query_set: QuerySet) -> Selection:
    """Read the query set (a sample of it if so configured) and the human queries of its documents."""
    documents = (line for line in query_sets.read_queries(job.workspace, query_set.id) if line.queries)
    if config.max_documents is None:
        chosen, sampled_from = list(documents), None
    else:
        chosen, total = reservoir(documents, config.max_documents, config.seed)
        sampled_from = total if total > len(chosen) else None
    ids = [line.document_id for line in chosen]
    human = None
    if config.human:
        wanted = set(ids)
        reference = query_sets.read_queries(job.workspace, config.human)
        human = {line.document_id: line.queries for line in reference if line.document_id in wanted}
    return Selection(
        ids=ids,
        queries=[line.queries[: config.per_doc] for line in chosen],
        human=human,
        language=config.language or query_set.language or "en",
        sampled_from=sampled_from,
    )


@dataclass(frozen=True)
class Measured:
    """The documents that could be measured, the values of the quick and of the model-based measures, and per-document
    values at the full Q/Doc by measure."""

    selection: Selection
    quick: list[MetricValue]
    values: list[MetricValue]
    columns: dict[str, NDArray[np.float64]]


def measure(
    job: Job,
    config: MetricsConfig,
    selection: Selection,
    scorer: PairScorer,
    encode: Encode,
    *,
    name: str = "",
) -> Measured:
    """Measure CE, and Dist-Sim if there are human queries. ``name`` tells several sets of one job apart."""
    quick = measure_query_set(
        zip(selection.ids, selection.queries, strict=True),
        language=selection.language,
        human=selection.human,
        sampled_from=selection.sampled_from,
        seed=config.seed,
        failures=job.failures(f"measuring {name}".rstrip()),
    )
    selection = selection.only(quick.document_ids)
    ratios = score_pairs(job, config, scorer, selection, f"{name}-pairs".lstrip("-"))
    values = [
        value_of(
            scorer.measure.name, column, selection, depth, reason=ONE_QUERY, model=scorer.model,
            threshold=scorer.threshold, seed=config.seed,
        )
        for depth, column in zip(depths_of(selection.most), ratios.T, strict=True)
    ]  # fmt: skip
    columns = {**quick.per_document, scorer.measure.name: ratios[:, -1]}
    if selection.human is not None:
        columns["dist_sim"] = compare_with_human(job, config, selection, encode, f"{name}-dist_sim".lstrip("-"))
        values.append(
            value_of("dist_sim", columns["dist_sim"], selection, selection.most,
                     reason="No document has human queries.", model=config.encoder, seed=config.seed)
        )  # fmt: skip
    return Measured(selection, quick.values, values, columns)


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
        return load_encoder(config.encoder, job.workspace, batch_size=config.batch_size)

    return lambda texts: model()(texts)


def score_pairs(job: Job, config: MetricsConfig, scorer: PairScorer, selection: Selection, kept: str) -> Values:
    """Return the share of each document's query pairs that are paraphrases, at each M, kept on disk as ``kept``."""
    depths = depths_of(selection.most)
    step = max(1, config.batch_size * _BATCHES_AT_ONCE // max(1, math.comb(selection.most, 2)))
    fingerprint = (scorer.measure.name, scorer.model, str(scorer.threshold), *_texts(selection.queries))
    return _rows(
        job, kept, "scoring pairs", selection.ids, selection.queries, len(depths), fingerprint,
        lambda window: document_ratios(window, scorer.score, scorer.threshold, depths), step,
    )  # fmt: skip


def compare_with_human(
    job: Job, config: MetricsConfig, selection: Selection, encode: Encode, kept: str
) -> NDArray[np.float64]:
    """Return Dist-Sim of each document, (n_documents,), NaN without human queries."""
    human = selection.human or {}
    compared = [i for i, name in enumerate(selection.ids) if human.get(name)]
    sides = [(selection.queries[i], human[selection.ids[i]]) for i in compared]
    fingerprint = (config.encoder, *_texts(itertools.chain.from_iterable(sides)))
    values = np.full(len(selection.ids), np.nan)
    values[compared] = _rows(
        job, kept, "comparing with human queries", [selection.ids[i] for i in compared], sides, 1, fingerprint,
        lambda window: document_dist_sims(window, encode)[:, None],
    )[:, 0]  # fmt: skip
    return values


def embed(job: Job, config: MetricsConfig, selection: Selection, encode: Encode) -> NDArray[np.float64]:
    """Return the embedding diversity of each document, (n_documents,)."""
    return _rows(
        job, "diversity", "embedding queries", selection.ids, selection.queries, 1,
        (config.encoder, *_texts(selection.queries)), lambda window: document_diversities(window, encode)[:, None],
    )[:, 0]  # fmt: skip


def _texts(documents: Iterable[Sequence[str]]) -> Iterator[str]:
    # The empty text tells where a document ends.
    return (text for queries in documents for text in ("", *queries))


def _rows(
    job: Job,
    kept: str,
    stage: str,
    ids: Sequence[object],
    items: Sequence[Any],
    width: int,
    fingerprint: Iterable[str],
    rows_of: Callable[[list[Any]], Values],
    step: int = _DOCUMENTS_AT_ONCE,
) -> Values:
    """Return ``rows_of`` the items, computed window by window, NaN for failed ones. Raises Stopped."""
    ledger = Ledger(job.folder / "checkpoints" / f"{kept}.f32", sha256_text(*fingerprint), width=width)
    failures = job.failures(stage, keep=ledger.done > 0)
    while ledger.done < len(items):
        start = ledger.done
        job.advance(stage, start, len(items), "documents")
        rows = failures.batch(
            lambda window: list(rows_of(window)),
            list(items[start : start + step]),
            lambda index, start=start: ids[start + index],  # type: ignore[misc]
            str,
        )
        ledger.append([[math.nan] * width if row is None else row for row in rows])
    job.progress(stage, len(items), len(items), "documents")
    return ledger.read()


if __name__ == "__main__":
    worker.run(main)
