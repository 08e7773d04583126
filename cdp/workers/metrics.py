"""The job behind the model-based measures of a query set: CE (or its stand-in), embedding diversity and Dist-Sim.

    python -m cdp.workers.metrics <job folder>

Settings are ``MetricsConfig``. What it writes:

``results/metrics.json``        ``measures``: what the models measured, at the full Q/Doc;
                                ``values``: every value, at each M and in both scopes, the quick measures too;
                                ``per_document``: columns; ``pairs``: the highest- and lowest-scoring; ``scorer``
``results/pair_scores.jsonl``   a line per document: the scores of its pairs, ordered as ``itertools.combinations``
``checkpoints/*.f32``           scores as they are made: a stopped or failed job goes on where it was
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import MetricsConfig, PromptTuningConfig
from cdp.base.worker import Job
from cdp.base.workspace import now, sha256_text
from cdp.metrics.measures.dist_sim import document_dist_sims
from cdp.metrics.measures.embedding_diversity import document_diversities
from cdp.metrics.query_set import DOCUMENT, CorpusPool, depths_of, measure_query_set, reservoir
from cdp.metrics.report import (
    Ledger,
    PairTable,
    Selection,
    dist_sim_values,
    diversity_values,
    examples,
    paraphrase_values,
    per_document_columns,
    write_pair_scores,
)
from cdp.metrics.scorers import PairScorer, load_encoder, load_scorer
from cdp.query_sets import QuerySet

_LOADING_S = 600.0
# A window may take this long without a heartbeat.
_BATCH_S = 300.0
_DOCUMENTS_AT_ONCE = 256
_BATCHES_AT_ONCE = 32

Encode = Callable[[list[str]], NDArray[np.float64]]
Settings = MetricsConfig | PromptTuningConfig


def main(job: Job) -> None:
    """Measure the query set that the job's settings name."""
    config = MetricsConfig.from_dict(job.config)
    job.progress("reading", 0, 0, "documents", next_within_s=_BATCH_S)
    query_set = query_sets.load(job.workspace, config.query_set)
    content_hash = query_sets.content_hash(job.workspace, query_set)
    selection = select(job, config, query_set)
    quick = measure_query_set(
        zip(selection.ids, selection.queries, strict=True),
        language=selection.language,
        stopwords=config.stopwords,
        human=selection.human,
        sampled_from=selection.sampled_from,
        seed=config.seed,
        failures=job.failures("measuring"),
    )
    selection = selection.only(quick.document_ids)
    job.progress("loading the scorer", 0, 0, "", next_within_s=_LOADING_S)
    scorer = load_scorer(config.scorer, job.workspace, threshold=config.threshold, batch_size=config.batch_size)
    if scorer.note:
        print(f"{scorer.measure.title} is used: {scorer.note}", flush=True)
    pool = CorpusPool(seed=config.seed)
    for queries in selection.queries:
        pool.add(queries)
    table = PairTable.of(selection.queries, pool.drawn(), by_length=scorer.by_length)
    scores = score_pairs(job, config, scorer, table)
    if scores is None:
        return
    encode = lazy_encoder(job, config)
    similarities = None
    if selection.human is not None:
        similarities = compare_with_human(job, config, selection, encode)
        if similarities is None:
            return
    diversities = embed(job, config, selection, encode)
    if diversities is None:
        return
    values = paraphrase_values(table, scores, scorer, selection, config.seed)
    columns = {**quick.per_document, scorer.measure.name: table.ratios(scores, scorer.threshold)}
    values += diversity_values(diversities, selection, config.encoder, config.seed)
    columns["embedding_diversity"] = diversities[:, -1]
    if similarities is not None:
        values += dist_sim_values(similarities, selection, config.encoder, config.seed)
        columns["dist_sim"] = similarities[:, -1]
    most = max(map(len, selection.queries), default=0)
    write_pair_scores(job.results / "pair_scores.jsonl", selection.ids, table, scores)
    job.result(
        "metrics",
        {
            "query_set": config.query_set,
            "human": config.human,
            "config": config.to_dict(),
            "language": selection.language,
            "created": now(),
            "measures": [v.to_dict() for v in values if v.scope == DOCUMENT and v.per_doc == most],
            "values": [v.to_dict() for v in (*quick.values, *values)],
            "per_document": per_document_columns(selection.ids, columns),
            "pairs": examples(selection, table, scores),
            "scorer": {
                "measure": scorer.measure.name,
                "model": scorer.model,
                "threshold": scorer.threshold,
                "note": scorer.note,
            },
            "n_documents": len(selection.ids),
            "failures": job.n_failures,
            "complete": query_set.complete,
            "query_set_hash": content_hash,
            "n_distinct_pairs": len(table),
            "sampled_from": selection.sampled_from,
        },
    )
    job.progress("done", len(table), len(table), "pairs")


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


def lazy_encoder(job: Job, config: Settings) -> Encode:
    """The model that embeds queries, loaded when the first window needs it and kept for all measures."""

    @cache
    def model() -> Encode:
        job.progress("loading the model", 0, 0, "", next_within_s=_LOADING_S)
        return load_encoder(config.encoder, job.workspace, batch_size=config.batch_size)

    return lambda texts: model()(texts)


def score_pairs(
    job: Job, config: Settings, scorer: PairScorer, table: PairTable, kept: str = "pair_scores"
) -> NDArray[np.float64] | None:
    """The score of each distinct pair, (n_distinct,), made or found on disk as ``kept``; None if stopped."""
    fingerprint = sha256_text(scorer.measure.name, scorer.model, table.fingerprint())
    ledger = Ledger(job.folder / "checkpoints" / f"{kept}.f32", fingerprint)
    step = config.batch_size if scorer.by_length else config.batch_size * _BATCHES_AT_ONCE
    items = Items("scoring pairs", "pair", len(table), step, table.pairs, lambda number: number, "\n".join)
    return ledger.read()[:, 0] if _filled(job, scorer.score, items, ledger) else None


def compare_with_human(
    job: Job, config: Settings, selection: Selection, encode: Encode, kept: str = "dist_sim"
) -> NDArray[np.float64] | None:
    """Dist-Sim of each document at each M, (n_documents, n_depths), NaN without human queries; None if stopped."""
    depths = depths_of(selection.queries)
    values = np.full((len(selection.ids), len(depths)), np.nan)
    human = selection.human or {}
    compared = [i for i, name in enumerate(selection.ids) if human.get(name)]
    sides = [(selection.queries[i], human[selection.ids[i]]) for i in compared]
    texts = (text for side in sides for queries in side for text in ("", *queries))
    ledger = Ledger(job.folder / "checkpoints" / f"{kept}.f32", sha256_text(config.encoder, *texts), width=len(depths))
    items = Items(
        "comparing with human queries",
        "document",
        len(sides),
        _DOCUMENTS_AT_ONCE,
        lambda start, stop: sides[start:stop],
        lambda number: selection.ids[compared[number]],
        lambda side: "\n".join(itertools.chain(*side)),
    )
    if not _filled(job, lambda window: document_dist_sims(window, encode, depths), items, ledger):
        return None
    values[compared] = ledger.read()
    return values


def embed(job: Job, config: MetricsConfig, selection: Selection, encode: Encode) -> NDArray[np.float64] | None:
    """Embedding diversity of each document at each M, (n_documents, n_depths); None if stopped."""
    depths = depths_of(selection.queries)
    texts = (text for queries in selection.queries for text in ("", *queries))
    fingerprint = sha256_text(config.encoder, *texts)
    ledger = Ledger(job.folder / "checkpoints" / "diversity.f32", fingerprint, width=len(depths))
    items = Items(
        "embedding queries",
        "document",
        len(selection.ids),
        _DOCUMENTS_AT_ONCE,
        lambda start, stop: selection.queries[start:stop],
        selection.ids.__getitem__,
        "\n".join,
    )
    rows = lambda window: document_diversities(window, encode, depths)  # noqa: E731
    return ledger.read() if _filled(job, rows, items, ledger) else None


@dataclass(frozen=True)
class Items:
    """``n`` items of one ``unit`` (singular) in windows of ``step``: ``of`` gives those from one number to another,
    ``name`` the id of an item by its number, ``text`` what it says, for the list of failures."""

    stage: str
    unit: str
    n: int
    step: int
    of: Callable[[int, int], list[Any]]
    name: Callable[[int], object]
    text: Callable[[Any], str]


def _filled(job: Job, rows_of: Callable[[list[Any]], NDArray[np.float64]], items: Items, ledger: Ledger) -> bool:
    """Fill the ledger window by window; False if a stop was requested first. What fails is NaN."""
    failures = job.failures(items.stage, unit=items.unit, keep=ledger.done > 0)
    nothing = math.nan if ledger.width == 1 else [math.nan] * ledger.width
    job.progress(items.stage, ledger.done, items.n, f"{items.unit}s", next_within_s=_BATCH_S)
    while ledger.done < items.n:
        if job.stop_requested():
            return False
        start = ledger.done
        rows = failures.batch(
            lambda window: list(rows_of(window)),
            items.of(start, start + items.step),
            lambda index, start=start: items.name(start + index),  # type: ignore[misc]
            items.text,
        )
        ledger.append([nothing if row is None else row for row in rows])
        job.progress(items.stage, ledger.done, items.n, f"{items.unit}s", next_within_s=_BATCH_S)
    return True


if __name__ == "__main__":
    worker.run(main)
