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

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import MetricsConfig
from cdp.base.crew import Crew, Stopped
from cdp.base.worker import Job
from cdp.base.workspace import now, sha256_text
from cdp.complexity import stopwords_of
from cdp.metrics.ledger import Ledger
from cdp.metrics.pairs import PairTable
from cdp.metrics.query_set import QuerySetMeasures, depths_of, measure_query_set
from cdp.metrics.quick import in_parts
from cdp.metrics.report import (
    Selection,
    dist_sim_values,
    diversity_values,
    examples,
    paraphrase_values,
    per_document_columns,
    write_pair_scores,
)
from cdp.metrics.sampling import CorpusPool, reservoir
from cdp.metrics.scorers import PairScorer
from cdp.metrics.spans import Team
from cdp.metrics.values import DOCUMENT
from cdp.metrics.windows import BATCH_S, Items, Model, about, about_there, done_by, done_here
from cdp.query_sets import QuerySet
from cdp.workers.crew import crew_of
from cdp.workers.measures import reporting, team_of

_LOADING_S = 600.0
_DOCUMENTS_AT_ONCE = 256
_BATCHES_AT_ONCE = 32
_ITEMS_OF_A_PART = 1024
"""About so many pairs or documents are a part of a divided job: whole windows, seconds of work."""


def main(job: Job) -> None:
    """Measure the query set that the job's settings name."""
    crew = crew_of(job)
    with suppress(Stopped):
        measure(job, crew)


def measure(job: Job, crew: Crew | None) -> None:
    """The same, by a crew where there is one."""
    config = MetricsConfig.from_dict(job.config)
    job.progress("reading", 0, 0, "documents", next_within_s=BATCH_S)
    query_set = query_sets.load(job.workspace, config.query_set)
    content_hash = query_sets.content_hash(job.workspace, query_set)
    selection = select(job, config, query_set)
    quick = measure_without_models(job, config, query_set, selection, team_of(job, crew))
    if quick is None:
        return
    selection = selection.only(quick.document_ids)
    job.progress("loading the scorer", 0, 0, "", next_within_s=_LOADING_S)
    asked = Model("pairs", config.scorer, str(job.workspace.root), config.batch_size, threshold=config.threshold)
    scorer = about(asked) if crew is None else about_there(crew, asked, job)
    if crew is not None:
        asked = asked.as_found(scorer)
    if scorer.note:
        print(f"{scorer.measure.title} is used: {scorer.note}", flush=True)
    pool = CorpusPool(seed=config.seed)
    for queries in selection.queries:
        pool.add(queries)
    table = PairTable.of(selection.queries, pool.drawn(), by_length=scorer.by_length)
    scores = score_pairs(job, asked, scorer, table, crew)
    if scores is None:
        return
    similarities = None
    if selection.human is not None:
        similarities = compare_with_human(job, config, selection, crew)
        if similarities is None:
            return
    diversities = embed(job, config, selection, crew)
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


def measure_without_models(
    job: Job, config: MetricsConfig, query_set: QuerySet, selection: Selection, team: Team | None
) -> QuerySetMeasures | None:
    """The quick measures of what is selected; a whole set by a ``team`` where there is one. None if stopped."""
    failures = job.failures("measuring")
    if team is not None and config.max_documents is None:
        depends = (query_sets.state(job.workspace, query_set), selection.language, config.to_dict())
        return in_parts(
            team, job.workspace, query_set, sha256_text(*map(str, depends))[:16], reporting(job), failures,
            language=selection.language, stopwords=config.stopwords, human=config.human, per_doc=config.per_doc,
            seed=config.seed,
        )  # fmt: skip
    return measure_query_set(
        zip(selection.ids, selection.queries, strict=True),
        language=selection.language,
        stopwords=stopwords_of(config.stopwords),
        human=selection.human,
        sampled_from=selection.sampled_from,
        seed=config.seed,
        failures=failures,
    )


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


def score_pairs(
    job: Job, model: Model, scorer: PairScorer, table: PairTable, crew: Crew | None
) -> NDArray[np.float64] | None:
    """The score of each distinct pair, (n_distinct,), made or found on disk; None if a stop was requested."""
    fingerprint = sha256_text(scorer.measure.name, scorer.model, table.fingerprint())
    ledger = Ledger(job.folder / "checkpoints" / "pair_scores.f32", fingerprint)
    step = model.batch_size if scorer.by_length else model.batch_size * _BATCHES_AT_ONCE
    items = Items("scoring pairs", "pair", len(table), step, table.pairs, lambda number: number)
    return ledger.read()[:, 0] if _filled(job, model, items, ledger, crew) else None


def compare_with_human(
    job: Job, config: MetricsConfig, selection: Selection, crew: Crew | None
) -> NDArray[np.float64] | None:
    """Dist-Sim of each document at each M, (n_documents, n_depths), NaN without human queries; None if stopped."""
    depths = depths_of(selection.queries)
    values = np.full((len(selection.ids), len(depths)), np.nan)
    human = selection.human or {}
    compared = [i for i, name in enumerate(selection.ids) if human.get(name)]
    sides = [(selection.queries[i], human[selection.ids[i]]) for i in compared]
    texts = (text for side in sides for queries in side for text in ("", *queries))
    ledger = Ledger(job.folder / "checkpoints" / "dist_sim.f32", sha256_text(config.encoder, *texts), width=len(depths))
    items = Items(
        "comparing with human queries",
        "document",
        len(sides),
        _DOCUMENTS_AT_ONCE,
        lambda start, stop: sides[start:stop],
        lambda number: selection.ids[compared[number]],
    )
    if not _filled(job, _encoder(job, config, "dist_sim", depths), items, ledger, crew):
        return None
    values[compared] = ledger.read()
    return values


def embed(job: Job, config: MetricsConfig, selection: Selection, crew: Crew | None) -> NDArray[np.float64] | None:
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
    )
    return ledger.read() if _filled(job, _encoder(job, config, "diversity", depths), items, ledger, crew) else None


def _encoder(job: Job, config: MetricsConfig, kind: str, depths: list[int]) -> Model:
    return Model(kind, config.encoder, str(job.workspace.root), config.batch_size, tuple(depths))


def _filled(job: Job, model: Model, items: Items, ledger: Ledger, crew: Crew | None) -> bool:
    """Fill the ledger, by the crew where there is one; False if a stop was requested first."""
    failures = job.failures(items.stage, unit=items.unit, keep=ledger.done > 0)
    if crew is not None:
        return done_by(crew, job, model, items, ledger, failures, windows=max(1, _ITEMS_OF_A_PART // items.step))
    job.progress("loading the model", 0, 0, "", next_within_s=_LOADING_S)
    return done_here(job, model, items, ledger, failures)


if __name__ == "__main__":
    worker.run(main)
