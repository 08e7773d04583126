"""The worker that mines hard negatives: ``python -m cdp.workers.mining <job folder>``.

Settings are ``MiningConfig``. sentence-transformers' ``mine_hard_negatives`` chooses them among the corpus's documents,
never a query's own document, one that the same query was written for, one of equal content, or a passage beside one
of these in its file. Writes a new query set
with the negatives, and ``results/mining.json``; with a cross-encoder also its scores as soft labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import MiningConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.text import public
from cdp.base.worker import Job
from cdp.corpus import iter_documents
from cdp.corpus.passages import neighbours
from cdp.metrics.scorers import load_cross_encoder
from cdp.query_sets import DocumentQueries
from cdp.retrievers import load, model_hash, resolve
from cdp.retrievers.encode import EmbeddingStore, Encoding, cast, precision_for

BATCH = 64
# Soft labels are logits; a probability of 1 or 0 would be infinite.
LARGEST_LOGIT = 15.0


class Miner:
    """The interface of ``mine_hard_negatives`` to a retriever, with our embedding store."""

    def __init__(self, job: Job, name: str, gpus: int | None) -> None:
        resolved = resolve(name, job.workspace)
        job.loading("the retriever")
        model = load(resolved, "cpu" if gpus == 0 else None)
        self.job, self.hash = job, model_hash(model)
        self.precision = precision_for(model)
        self.model = cast(model, self.precision)
        self.store = EmbeddingStore(job.workspace)
        self.device = torch.device("cpu")

    def _encode(self, texts: Sequence[str], role: str) -> np.ndarray:
        encoding = Encoding(self.hash, role, self.model.prompts[role], True, None, self.precision)
        phase = "encoding queries" if role == "query" else "encoding documents"
        embedded = self.store.get(lambda: self.model, texts, encoding, progress=partial(self.job.advance, phase))
        return np.concatenate([np.asarray(part, np.float32) for part in embedded.parts])

    def encode_document(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        return self._encode(texts, "document")

    def encode_query(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        return self._encode(texts, "query")

    def similarity(self, queries: Any, documents: Any) -> torch.Tensor:
        return torch.as_tensor(queries) @ torch.as_tensor(documents).T

    def similarity_pairwise(self, queries: Any, documents: Any) -> torch.Tensor:
        return (torch.as_tensor(queries) * torch.as_tensor(documents)).sum(1)


def main(job: Job) -> None:
    config = MiningConfig.from_dict(job.config)
    query_set = query_sets.load(job.workspace, config.query_set)
    if not query_set.complete:
        raise ConfigError(f"{query_set.name} is incomplete.", hint="Wait for its job, or resume it.")
    job.progress("reading", 0, 0, "")
    contents = {d.id: d.content for d in iter_documents(job.workspace, query_set.corpus_id) if d.content.strip()}
    negatives = mine(job, config, contents)
    scores = soft_labels(job, config, contents, negatives) if config.cross_encoder else {}

    def lists(line: DocumentQueries) -> dict[str, list[Any]]:
        named = [negatives.get(text, []) for text in line.queries]
        taught = [scores.get((line.document_id, text), []) for text in line.queries]
        return {"negatives": named, **({"teacher": taught} if config.cross_encoder else {})}

    counts = [
        len(negatives.get(text, ()))
        for line in query_sets.read_queries(job.workspace, query_set.id)
        for text in line.queries
    ]
    facts = {
        "hard_negatives": sum(counts),
        "mined": config.replace(retriever=public(config.retriever)).text,
        **({"teacher": public(config.cross_encoder)} if config.cross_encoder else {}),
    }
    name = config.name or f"{query_set.name} + {config.negatives} hard negatives"
    made = query_sets.derive(job.workspace, query_set, lambda line: line.queries, name, facts, of_each=lists).query_set
    fewer = sum(n < config.negatives for n in counts)
    job.result(
        "mining",
        {"query_set": made.id, "made_from": query_set.id, "retriever": config.retriever, "n_queries": len(counts),
         "hard_negatives": sum(counts), "queries_with_fewer": fewer, "queries_without": counts.count(0),
         "soft_labels": len(scores)},
    )  # fmt: skip
    print(f"{made.name}: {sum(counts):,} hard negatives; {fewer:,} queries have fewer than asked for", flush=True)
    job.progress("done", len(counts), len(counts), "queries")


def mine(job: Job, config: MiningConfig, contents: dict[str, str]) -> dict[str, list[str]]:
    """Return query text → ids of its hard negatives, hardest first. InputError if there are no candidates."""
    from datasets import Dataset  # type: ignore[import-untyped, unused-ignore]
    from sentence_transformers.util import mine_hard_negatives

    pairs = [
        (text, contents[line.document_id])
        for line in query_sets.read_queries(job.workspace, config.query_set)
        if line.document_id in contents
        for text in line.queries
    ]
    ids = {content: name for name, content in reversed(contents.items())}  # of equal contents the first
    beside = neighbours(contents)
    answers: dict[str, set[str]] = {}
    for query, document in pairs:
        answers.setdefault(query, set()).add(ids[document])
    unfit = {query: {near for name in names for near in beside.get(name, ())} for query, names in answers.items()}
    spare = max(map(len, unfit.values()))
    if len(ids) < 2 or not pairs:
        raise InputError("There is no second document to choose hard negatives from.")
    dataset = Dataset.from_dict({"query": [q for q, _ in pairs], "document": [d for _, d in pairs]})
    mined = mine_hard_negatives(
        dataset,
        Miner(job, config.retriever, config.gpus),  # type: ignore[arg-type, unused-ignore]
        corpus=list(ids),
        range_min=config.range_min,
        range_max=config.range_max + spare,
        relative_margin=config.relative_margin,
        num_negatives=config.negatives + spare,
        output_format="labeled-pair",
        verbose=False,
    )
    negatives: dict[str, dict[str, None]] = {}
    for query, document, label in zip(mined["query"], mined["document"], mined["label"], strict=True):
        if not label and ids[document] not in unfit[query]:
            negatives.setdefault(query, {})[ids[document]] = None
    return {query: list(names)[: config.negatives] for query, names in negatives.items()}


def soft_labels(
    job: Job, config: MiningConfig, contents: dict[str, str], negatives: dict[str, list[str]]
) -> dict[tuple[str, str], list[float]]:
    """Return (document id, query) → the cross-encoder's logits of the document and each negative."""
    job.loading("the cross-encoder")
    scorer = load_cross_encoder(
        config.cross_encoder, job.workspace, batch_size=BATCH, device="cpu" if config.gpus == 0 else None
    )
    rows = [
        (line.document_id, text)
        for line in query_sets.read_queries(job.workspace, config.query_set)
        for text in line.queries
        if line.document_id in contents and text in negatives
    ]
    labels: dict[tuple[str, str], list[float]] = {}
    for start in range(0, len(rows), BATCH):
        job.advance("scoring", start, len(rows), "queries")
        part = rows[start : start + BATCH]
        pairs = [(text, contents[name]) for own, text in part for name in (own, *negatives[text])]
        found = np.clip(np.asarray(scorer(pairs), np.float64), 1e-7, 1 - 1e-7)
        logits = np.clip(np.log(found / (1 - found)), -LARGEST_LOGIT, LARGEST_LOGIT).round(4).tolist()
        for own, text in part:
            width = 1 + len(negatives[text])
            labels[own, text], logits = logits[:width], logits[width:]
    return labels


if __name__ == "__main__":
    worker.run(main)
