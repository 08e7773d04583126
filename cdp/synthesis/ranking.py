"""dragon_s_faithful: every sentence of the corpus is a query, and retrievers label it by ranking the corpus.

The teachers work one after another, as DRAGON's progressive label augmentation has it (Lin et al., 2023): a trainer
that reads ``rankings.jsonl`` from its beginning meets the labels of the first teacher first. Of each ranking the
documents at ranks 1 to 10 are positives and those at 46 to 50 hard negatives. ``queries.jsonl`` holds the same labels
seen from the documents, so that every other part of the program can use them: the first M sentences for which a
document is a positive, by rank, then by teacher.

The corpus and its sentences are held in memory (embeddings are memory maps); sentences are ranked in blocks, each on
disk before the next, so a resumed job goes on with the block it was in.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.failures import Failures, lost
from cdp.base.records import Document
from cdp.base.worker import START_FOR_S, Job
from cdp.base.workspace import append_jsonl
from cdp.corpus import load_manifest
from cdp.query_sets.store import scan, write_lines
from cdp.synthesis.methods import method_of
from cdp.synthesis.parsing import LONGEST_QUERY, comparison_key
from cdp.synthesis.templates.phrases import sentences
from cdp.synthesis.work import Work, finish, open_query_set, query_set_id

POSITIVE_RANKS = 10
NEGATIVE_RANKS = (46, 50)
# Sentences that are embedded, ranked and written down at once.
BLOCK = 1024


def teachers_of(config: SynthesisConfig) -> list[str]:
    """The names of the teachers, in sequence; ConfigError where there is none."""
    names = [name.strip() for name in config.teachers.split(",") if name.strip()]
    if not names:
        raise ConfigError("dragon_s_faithful needs a teacher.", hint="Set teachers to one or more retrievers.")
    return names


class RankingRun:
    """One attempt at a job of this method."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.config = SynthesisConfig.from_dict(job.config)
        self.corpus = load_manifest(job.workspace, self.config.corpus)
        self.teachers = teachers_of(self.config)
        self.query_set_id = query_set_id(job.id, self.config)
        self.files = query_sets.files(job.workspace, self.query_set_id)
        self._began = time.monotonic()

    def execute(self) -> dict[str, Any]:
        """Rank what is not ranked yet; returns (and stores) the result."""
        open_query_set(
            self.job,
            self.config,
            method_of(self.config),
            self.corpus,
            generator="ranking",
            model=", ".join(self.teachers),
            parameters={"positives": [1, POSITIVE_RANKS], "negatives": list(NEGATIVE_RANKS)},
        )
        work = Work.of(self.job.workspace, self.config, method_of(self.config), self.corpus)
        items = list(work.items(self.job.workspace))
        documents = [item.document for item in items]
        path = self.files.failures
        splitting = self.job.failures("splitting into sentences", path=path)
        queries, too_long = distinct_sentences(documents, splitting)
        splitting.close()
        whole = self._rank(documents, queries)
        return self._close(documents, [item.position for item in items], queries, too_long, whole)

    def _rank(self, documents: list[Document], queries: list[tuple[int, str]]) -> bool:
        """Append a line per teacher and sentence; False where a stop was asked for first."""
        done = {line["position"] for _, _, line in scan(self.files.rankings)}
        path = self.files.failures
        failures = self.job.failures("ranking", unit="sentence", path=path, keep=bool(done))
        total = len(queries) * len(self.teachers)
        for number, name in enumerate(self.teachers):
            first = number * len(queries)
            if all(position in done for position in range(first, first + len(queries))):
                continue
            self.job.progress("loading", len(done), total, "rankings", name, next_within_s=START_FOR_S)
            rank = _Teacher(self.job, name, [document.content for document in documents], self.config)
            for start in range(0, len(queries), BLOCK):
                block = [i for i in range(start, min(start + BLOCK, len(queries))) if first + i not in done]
                if self.job.stop_requested():
                    return False
                if not block:
                    continue
                ranked = failures.batch(
                    rank,
                    [queries[i][1] for i in block],
                    lambda at, block=block: f"{documents[queries[block[at]][0]].id}, sentence {block[at]}",  # type: ignore[misc]
                    str,
                )
                append_jsonl(
                    self.files.rankings,
                    [
                        {
                            "position": first + i,
                            "teacher": name,
                            "query": queries[i][1],
                            "document_id": documents[queries[i][0]].id,
                            "positives": [documents[d].id for d in row[:POSITIVE_RANKS]],
                            "negatives": [documents[d].id for d in row[NEGATIVE_RANKS[0] - 1 : NEGATIVE_RANKS[1]]],
                        }
                        for i, row in zip(block, (row or [] for row in ranked), strict=True)
                    ],
                )
                done.update(first + i for i in block)
                self.job.progress("ranking", len(done), total, "rankings", name)
        return True

    def _close(
        self, documents: list[Document], places: list[int], queries: list[tuple[int, str]], too_long: int, whole: bool
    ) -> dict[str, Any]:
        queries_file, failures_file = self.files.queries, self.files.failures
        position_of = {document.id: position for position, document in enumerate(documents)}
        lines = labels(self.files.rankings, position_of, len(queries), self.config.per_doc) if whole else iter(())
        labelled: set[int] = set()

        def written() -> Iterator[dict[str, Any]]:
            for position, chosen in lines:
                labelled.add(position)
                texts = [queries[i][1] for i in chosen]
                yield {"document_id": documents[position].id, "position": places[position], "queries": texts}

        write_lines(queries_file, written())
        failed = list(lost(query_sets.iter_failures(self.job.workspace, self.query_set_id)))
        failed = [line for line in failed if line.get("stage")]  # not those that an earlier attempt left at its end
        reported = {line["document_id"] for line in failed if "document_id" in line}
        left = [
            {"document_id": document.id, "position": places[position], "reason": "It is a positive of no sentence."}
            for position, document in enumerate(documents)
            if whole and position not in labelled and document.id not in reported
        ]
        write_lines(failures_file, [*failed, *left])
        return finish(
            self.job,
            self.query_set_id,
            self.corpus,
            query_sets.count(queries_file),
            len(failed) + len(left),
            began=self._began,
            complete=whole,
            incomplete=0,
            sentences=len(queries),
            over_long_sentences=too_long,
            with_negatives=len(documents) >= NEGATIVE_RANKS[0],
            teachers=self.teachers,
            model=", ".join(self.teachers),
            cost=None,
        )


class _Teacher:
    """A retriever with the corpus embedded: maps sentences to the documents at ranks 1 to 50."""

    def __init__(self, job: Job, name: str, texts: list[str], config: SynthesisConfig) -> None:
        import torch

        from cdp.retrievers import load, model_hash, resolve
        from cdp.retrievers.api import Payer
        from cdp.retrievers.encode import EmbeddingStore, Encoding

        self.device = "cuda" if config.gpus != 0 and torch.cuda.is_available() else "cpu"
        payer = Payer.of(job, config.budget, name, teachers_of(config))
        self.model = load(resolve(name, job.workspace), self.device, payer=payer)
        digest = model_hash(self.model)
        self._query = Encoding(digest, "query", self.model.prompts.get("query") or "")
        self._n = len(texts)
        encoding = Encoding(digest, "document", self.model.prompts.get("document") or "")
        self._documents = EmbeddingStore(job.workspace).get(
            lambda: self.model,
            texts,
            encoding,
            progress=lambda done, total: job.progress("embedding", done, total, "documents", name),
        )

    def __call__(self, queries: list[str]) -> list[list[int]]:
        from cdp.retrievers.encode import encode
        from cdp.retrievers.exact_search import search

        vectors = encode(self.model, queries, self._query)
        k = min(NEGATIVE_RANKS[1], self._n)
        _, indices = search(vectors, self._documents.parts, k, device=self.device)
        ranked: list[list[int]] = indices.tolist()
        return ranked


def distinct_sentences(
    documents: list[Document], failures: Failures | None = None
) -> tuple[list[tuple[int, str]], int]:
    """(document's place, sentence) of each distinct sentence, and how many were too long for a query.

    A document that cannot be split is recorded in ``failures``.
    """
    failures = failures or Failures()
    seen: set[str] = set()
    distinct: list[tuple[int, str]] = []
    too_long = 0
    for position, document in enumerate(documents):
        with failures.item(document.id, document.text, position=position):
            for sentence in sentences(document.text):
                if len(sentence) > LONGEST_QUERY:
                    too_long += 1
                elif (key := comparison_key(sentence)) and key not in seen:
                    seen.add(key)
                    distinct.append((position, sentence))
    return distinct, too_long


def labels(path: Path, position_of: dict[str, int], n_queries: int, per_doc: int) -> Iterator[tuple[int, list[int]]]:
    """(document's place, the queries it is a positive of) in corpus order: by rank, then teacher, each query once."""
    positions, order, which = array("q"), array("q"), array("q")
    for _, _, line in scan(path):
        teacher, query = divmod(line["position"], n_queries)
        for rank, document_id in enumerate(line["positives"]):
            positions.append(position_of[document_id])
            order.append((rank << 40) + (teacher << 32))
            which.append(query)
    sequence = np.lexsort(tuple(np.asarray(column, np.int64) for column in (which, order, positions)))
    for position, rows in groupby(sequence.tolist(), key=lambda row: positions[row]):
        yield position, list(dict.fromkeys(which[row] for row in rows))[:per_doc]
