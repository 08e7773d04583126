"""dragon_s_faithful: DRAGON's sentences as queries, ranked by teachers over the corpus; positive and negative ranks.

The teachers work one after another, as DRAGON's progressive label augmentation has it (Lin et al., 2023): a trainer
that reads ``rankings.jsonl`` from its beginning meets the labels of the first teacher first. Of each ranking the
documents at ranks 1 to 10 are positives and those at 46 to 50 hard negatives. ``queries.jsonl`` holds the same labels
seen from the documents, so that every other part of the program can use them: the first M sentences for which a
document is a positive, by rank, then by teacher.

The corpus and its rankings are held in memory; embeddings are kept in the workspace, so a resumed job ranks again
without encoding again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.failures import Failures
from cdp.base.records import Document
from cdp.base.worker import Job
from cdp.base.workspace import write_jsonl
from cdp.corpus import load_manifest
from cdp.retrievers import api
from cdp.synthesis.methods import method_of
from cdp.synthesis.parsing import LONGEST_QUERY, comparison_key
from cdp.synthesis.sentences import sentences
from cdp.synthesis.work import Item, Work, finish, open_query_set

POSITIVE_RANKS = 10
NEGATIVE_RANKS = (46, 50)


def teachers_of(config: SynthesisConfig) -> tuple[str, ...]:
    """The names of the teachers, in sequence; ConfigError where there is none, or one behind an API."""
    if not config.teachers or any(map(api.parse, config.teachers)):
        raise ConfigError(
            "dragon_s_faithful needs a teacher on this machine.", hint="Set teachers to one or more retrievers."
        )
    return config.teachers


def label_corpus(job: Job) -> dict[str, Any]:
    """Write the query set of a job of this method; return (and store) the result. Raises Stopped."""
    began = time.monotonic()
    config = SynthesisConfig.from_dict(job.config)
    method, corpus, teachers = method_of(config), load_manifest(job.workspace, config.corpus), teachers_of(config)
    model = ", ".join(teachers)
    ranks = {"positives": [1, POSITIVE_RANKS], "negatives": list(NEGATIVE_RANKS)}
    query_set = open_query_set(job, config, method, corpus, generator="ranking", model=model, parameters=ranks)

    files = query_sets.files(job.workspace, query_set)
    files.failures.unlink(missing_ok=True)
    items = list(Work.of(job.workspace, config, method, corpus).items(job.workspace))
    documents = [item.document for item in items]
    failures = job.failures("splitting into sentences", path=files.failures)
    queries, too_long = distinct_sentences(documents, failures)
    failures.close()

    if not queries:
        raise InputError(f"There is no sentence of at most {LONGEST_QUERY} characters in the corpus.")

    texts = [text for _, text in queries]
    ranked = np.stack([_ranked(job, name, documents, texts, config) for name in teachers])
    labelled = labels(ranked[:, :, :POSITIVE_RANKS], config.per_doc)
    write_jsonl(files.rankings, _rankings(teachers, queries, documents, ranked))
    write_jsonl(files.queries, _query_lines(items, texts, labelled))

    reported = {line["document_id"] for line in query_sets.iter_failures(job.workspace, query_set)}
    for d, item in enumerate(items):
        name = item.document.id
        if d not in labelled and name not in reported:
            failures.write(
                {"document_id": name, "position": item.position, "reason": "It is a positive of no sentence."}
            )

    return finish(
        job,
        query_set,
        corpus,
        query_sets.count(files.queries),
        len(items) - len(labelled),
        began=began,
        complete=True,
        incomplete=0,
        sentences=len(queries),
        over_long_sentences=too_long,
        with_negatives=len(documents) >= NEGATIVE_RANKS[0],
        teachers=teachers,
        model=model,
        cost=None,
    )


def _rankings(
    teachers: Sequence[str],
    queries: Sequence[tuple[int, str]],
    documents: Sequence[Document],
    ranked: NDArray[np.int32],
) -> Iterator[dict[str, Any]]:
    """Yield a line for each teacher and query, of ``ranked`` (teachers, queries, ranks): positives and negatives."""
    position = 0
    for teacher, of_queries in zip(teachers, ranked.tolist(), strict=True):
        for (own, query), row in zip(queries, of_queries, strict=True):
            ids = [documents[d].id for d in row]
            yield {
                "position": position,
                "teacher": teacher,
                "query": query,
                "document_id": documents[own].id,
                "positives": ids[:POSITIVE_RANKS],
                "negatives": ids[NEGATIVE_RANKS[0] - 1 :],
            }

            position += 1


def _query_lines(
    items: Sequence[Item], texts: Sequence[str], labelled: Mapping[int, Sequence[int]]
) -> Iterator[dict[str, Any]]:
    """Yield the line of each document that is a positive of some query."""
    for d, item in enumerate(items):
        if d in labelled:
            queries = [texts[i] for i in labelled[d]]
            yield {"document_id": item.document.id, "position": item.position, "queries": queries}


def _ranked(
    job: Job, teacher: str, documents: Sequence[Document], queries: Sequence[str], config: SynthesisConfig
) -> NDArray[np.int32]:
    """Return the numbers of the documents at ranks 1 to 50 for each query, shape (n_queries, ≤ 50)."""
    import torch

    from cdp.retrievers import DENSE, load, model_hash, resolve
    from cdp.retrievers.encode import EmbeddingStore, Encoding
    from cdp.retrievers.exact_search import search

    device = "cuda" if config.gpus != 0 and torch.cuda.is_available() else "cpu"
    job.loading(teacher)
    retriever = resolve(teacher, job.workspace)
    retriever.require([DENSE], "ranking sentences")
    model = load(retriever, device)
    digest, store = model_hash(model), EmbeddingStore(job.workspace)

    def embedded(texts: Sequence[str], role: str, unit: str) -> Sequence[np.ndarray]:
        encoding = Encoding(digest, role, model.prompts.get(role) or "")
        return store.get(
            lambda: model, texts, encoding, progress=lambda done, n: job.advance("embedding", done, n, unit, teacher)
        ).parts

    parts = embedded([document.content for document in documents], "document", "documents")
    k = min(NEGATIVE_RANKS[1], len(documents))
    found: list[NDArray[np.int32]] = []
    for vectors in embedded(queries, "query", "sentences"):
        job.advance("ranking", sum(map(len, found)), len(queries), "sentences", teacher)
        found.append(search(np.asarray(vectors, np.float32), parts, k, device=device)[1].astype(np.int32))
    return np.concatenate(found)


def distinct_sentences(documents: list[Document], failures: Failures) -> tuple[list[tuple[int, str]], int]:
    """(document's place, sentence) of each distinct sentence, and how many were too long for a query.

    A document that cannot be split is recorded in ``failures``.
    """
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


def labels(positives: NDArray[np.int32], per_doc: int) -> dict[int, list[int]]:
    """Return the first ``per_doc`` queries of each document that is a positive of some: by rank, then teacher.

    ``positives`` are document numbers of shape (teachers, queries, ranks).
    """
    teacher, query, rank = (axis.ravel() for axis in np.indices(positives.shape))
    order = np.lexsort((query, teacher, rank, positives.ravel()))
    document = positives.ravel()[order]
    starts = np.flatnonzero(np.diff(document, prepend=-1))
    groups = np.split(query[order], starts[1:])
    return {
        int(document[start]): list(dict.fromkeys(group.tolist()))[:per_doc]
        for start, group in zip(starts, groups, strict=True)
    }
