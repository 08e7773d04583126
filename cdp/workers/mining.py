"""The worker that mines hard negatives and soft labels: ``python -m cdp.workers.mining <job folder>``.

Writes a new query set with the negatives (``cdp.training.mining``), and ``results/mining.json``; with a teacher or a
cross-encoder also its scores as soft labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import MiningConfig
from cdp.base.errors import ConfigError
from cdp.base.job_kind import LIGHT, QUERY_SET, WHOLE_SET, Device, JobKind, PreparedJob, device_for
from cdp.base.text import public
from cdp.base.worker import Job
from cdp.base.workspace import Workspace
from cdp.corpus import iter_documents, load_manifest
from cdp.metrics.scorers import load_cross_encoder
from cdp.query_sets import DocumentQueries
from cdp.retrievers.api import Payer, record_failed
from cdp.retrievers.resolve import check_cross_encoder, is_loaded, resolve
from cdp.training.mining import Miner, mine, similarities

BATCH = 64
# Soft labels are logits; a probability of 1 or 0 would be infinite.
LARGEST_LOGIT = 15.0


def main(job: Job) -> None:
    config = MiningConfig.from_dict(job.config)
    query_set = query_sets.load(job.workspace, config.query_set)
    if not query_set.complete:
        raise ConfigError(f"{query_set.name} is incomplete.", hint="Wait for its job, or resume it.")

    job.progress("reading", 0, 0, "")
    contents = {d.id: d.content for d in iter_documents(job.workspace, query_set.corpus_id) if d.content.strip()}
    pairs: list[tuple[str, str]] = []
    for line in query_sets.read_queries(job.workspace, config.query_set):
        pairs += product(line.queries, [line.document_id])

    def ranker(retriever: str) -> Miner:
        payer = Payer.of(job, config.budget, retriever, (config.retriever, config.teacher))
        return Miner(job.workspace, retriever, config.gpus, job.advance, payer)

    job.loading("the retriever")
    ranks, first = (config.range_min, config.range_max), ranker(config.retriever)
    negatives, too_near = mine(
        pairs, contents, first, beside=load_manifest(job.workspace, query_set.corpus_id).neighbours(contents),
        negatives=config.negatives, ranks=ranks, margin=config.relative_margin,
    )  # fmt: skip

    scores: dict[tuple[str, str], list[float]] = {}

    if config.teacher:
        job.loading("the teacher")
        scores = similarities(pairs, contents, negatives, ranker(config.teacher))
    elif config.cross_encoder:
        scores = soft_labels(job, config, pairs, contents, negatives)

    record_failed(job, first.model, contents.items(), ((text, text) for text, _ in pairs))
    taught_by = config.teacher or config.cross_encoder

    def lists(line: DocumentQueries) -> dict[str, list[Any]]:
        of_each: dict[str, list[Any]] = {"negatives": [negatives.get(text, []) for text in line.queries]}
        if taught_by:
            of_each["teacher"] = [scores.get((line.document_id, text), []) for text in line.queries]

        return of_each

    counts = np.array([len(negatives.get(text, ())) for text, _ in pairs], np.int64)
    total, fewer = int(counts.sum()), int((counts < config.negatives).sum())
    happened = {
        "asked": config.negatives * len(counts), "found": total, "left_out_by_margin": too_near,
        "queries_with_fewer": fewer, "queries_without": int((counts == 0).sum()),
    }  # fmt: skip

    mined = config.replace(retriever=public(config.retriever)).text
    facts = {"hard_negatives": total, "mining": happened, "mined": mined}
    if taught_by:
        facts["teacher"] = public(taught_by)

    name = config.name or f"{query_set.name} + {config.negatives} hard negatives"
    made = query_sets.derive(job.workspace, query_set, lambda line: line.queries, name, facts, of_each=lists).query_set
    job.result(
        "mining",
        {"query_set": made.id, "made_from": query_set.id, "retriever": config.retriever, "n_queries": len(counts),
         "hard_negatives": total, **happened, "soft_labels": len(scores)},
    )  # fmt: skip

    print(
        f"{made.name}: {total:,} hard negatives; {fewer:,} queries have fewer than asked for "
        f"({too_near:,} documents were too near by the margin)",
        flush=True,
    )

    job.progress("done", len(counts), len(counts), "queries")


def soft_labels(
    job: Job, config: MiningConfig, pairs: list[tuple[str, str]], contents: dict[str, str],
    negatives: dict[str, list[str]],
) -> dict[tuple[str, str], list[float]]:  # fmt: skip
    """Return (document id, query) → the cross-encoder's logits of the document and each negative."""
    job.loading("the cross-encoder")
    scorer = load_cross_encoder(config.cross_encoder, job.workspace, batch_size=BATCH, device=device_for(config.gpus))
    rows = [(own, text) for text, own in pairs if own in contents and text in negatives]
    labels: dict[tuple[str, str], list[float]] = {}
    for start in range(0, len(rows), BATCH):
        job.advance("scoring", start, len(rows), "queries")
        part = rows[start : start + BATCH]
        asked = [(text, contents[name]) for own, text in part for name in (own, *negatives[text])]
        found = np.clip(np.asarray(scorer(asked), np.float64), 1e-7, 1 - 1e-7)
        logits = np.clip(np.log(found / (1 - found)), -LARGEST_LOGIT, LARGEST_LOGIT).round(4).tolist()
        for own, text in part:
            width = 1 + len(negatives[text])
            labels[own, text], logits = logits[:width], logits[width:]

    return labels


def prepare(workspace: Workspace, config: MiningConfig, after: Sequence[str] = ()) -> PreparedJob:
    resolve(config.retriever, workspace)
    if config.cross_encoder:
        check_cross_encoder(workspace, config.cross_encoder)
    return PreparedJob(config)


def device(config: MiningConfig) -> Device:
    if config.cross_encoder or any(map(is_loaded, filter(None, [config.retriever, config.teacher]))):
        return Device(config.gpus, at_most=1)
    return LIGHT


KIND = JobKind(
    "mining", "Mining hard negatives", "A copy of a query set with hard negatives for its queries.", MiningConfig, main,
    prepare, called="Hard negatives for {query_set}", inputs={"query_set": WHOLE_SET}, device=device, makes=QUERY_SET,
    command="queries mine", word="query_set", order=50,
)  # fmt: skip


if __name__ == "__main__":
    worker.run(main)
