"""Which documents and source queries a synthesis job has to do; the manifest of its set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.records import Document
from cdp.base.text import Progress, silent
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, sha256_text, slug
from cdp.complexity import content_words
from cdp.corpus import CorpusManifest, iter_documents, open_corpus
from cdp.corpus.documents import permutation
from cdp.query_sets.store import Totals, beside_documents, known_language
from cdp.retrievers import bm25
from cdp.synthesis.methods import Method

Groups = list[list[tuple[int, str]]]
# Groups whose documents are read at once.
BLOCK = 256


@dataclass(frozen=True)
class Item:
    """One document, its position in the corpus, and the queries it comes with; of a group ``others`` are the positions
    of the documents after the first."""

    position: int
    document: Document
    queries: tuple[str, ...] = ()
    others: tuple[int, ...] = ()

    @property
    def members(self) -> tuple[tuple[int, Document], ...]:
        """(position, document) of all documents that are asked about at once."""
        return tuple(zip((self.position, *self.others), documents_of(self.document), strict=True))


@dataclass(frozen=True)
class Work:
    """``documents`` are to be asked about, which lie among the first ``positions`` of the corpus: all of them, or those
    that were ``drawn``."""

    corpus_id: str
    positions: int
    documents: int
    source: str = ""
    drawn: frozenset[int] | None = None

    @classmethod
    def of(cls, workspace: Workspace, config: SynthesisConfig, method: Method, corpus: CorpusManifest) -> Work:
        """ConfigError where the method's source is missing, unfinished, or belongs to another corpus."""
        n = min(config.limit or corpus.n_documents, corpus.n_documents)
        drawn, positions = None, n
        if config.draw is not None and n < corpus.n_documents:
            drawn = frozenset(permutation(corpus.n_documents, config.draw)[:n].tolist())
            positions = corpus.n_documents

        if not method.from_queries:
            return cls(corpus.id, positions, n, drawn=drawn)

        if not config.source:
            raise ConfigError(
                f"The method {method.name} works from existing queries.",
                hint="Set source to a query set of the corpus.",
            )

        source = query_sets.resolve_query_set(workspace, config.source)
        if source.corpus_hash != corpus.content_hash:
            raise ConfigError(f"The query set {source.name!r} belongs to another corpus, {source.corpus_id}.")
        if not source.complete:
            raise ConfigError(f"The query set {source.name!r} is not finished.", hint="Resume its job first.")

        work = cls(corpus.id, positions, 0, source.id, drawn)
        n_documents = sum(work.takes(line["position"]) for line in query_sets.iter_lines(workspace, source.id))

        return replace(work, documents=n_documents)

    def takes(self, position: int) -> bool:
        """Return True if the document at this position of the corpus is asked about."""
        if self.drawn is None:
            return position < self.positions
        return position in self.drawn

    def items(self, workspace: Workspace, *, start: int = 0, groups: Groups | None = None) -> Iterator[Item]:
        """The documents from position ``start`` on, streamed, in the order of the corpus; or the ``groups``."""
        if groups is not None:
            yield from self._grouped(workspace, groups)
            return

        if self.source:
            for line, document in beside_documents(workspace, self.source, start=start):
                if self.takes(line["position"]):
                    yield Item(line["position"], document, tuple(line["queries"]))
            return

        documents = iter_documents(workspace, self.corpus_id, start=start, limit=self.positions - start)
        for position, document in enumerate(documents, start=start):
            if self.takes(position):
                yield Item(position, document)

    def _grouped(self, workspace: Workspace, groups: Groups) -> Iterator[Item]:
        for at in range(0, len(groups), BLOCK):
            block = groups[at : at + BLOCK]
            found = open_corpus(workspace, self.corpus_id).get(list(map(itemgetter(1), chain.from_iterable(block))))
            for group in block:
                positions, names = zip(*group, strict=True)
                documents = list(map(found.__getitem__, names))
                yield Item(positions[0], Group.of(documents), others=positions[1:])

    def groups(self, workspace: Workspace, corpus: CorpusManifest, watch: Progress = silent) -> Groups:
        """The groups of related documents that a joint method is asked about."""
        taken = list(filter(self.takes, range(self.positions)))
        return related_groups(workspace, corpus, taken, watch)


def open_query_set(
    job: Job,
    config: SynthesisConfig,
    method: Method,
    corpus: CorpusManifest,
    *,
    generator: str,
    model: str,
    parameters: Mapping[str, object],
) -> str:
    """Write the manifest of the job's query set, unless an earlier attempt did; returns its id."""
    name = query_set_id(job.id, config)
    if query_sets.exists(job.workspace, name):
        return name

    values = config.to_dict()
    kept = {"max_document_tokens": values["max_document_tokens"], "limit": values["limit"]}
    for key in ("prompt", "source"):
        if values[key]:
            kept[key] = values[key]
    if config.limit is not None and config.draw is not None:
        kept["draw"] = config.draw

    query_sets.create(
        job.workspace,
        query_sets.QuerySet(
            id=name,
            name=config.name or f"{corpus.name} · {config.method} × {config.per_doc}",
            corpus_id=corpus.id,
            corpus_hash=corpus.content_hash,
            kind="synthetic",
            method=config.method,
            generator=generator,
            model=model,
            per_doc=config.per_doc,
            prompt_hash=method.prompt_hash,
            language=known_language(corpus),
            parameters={**parameters, **kept},
            job_id=job.id,
        ),
    )

    return name


def finish(
    job: Job, query_set: str, corpus: CorpusManifest, totals: Totals, n_failures: int, *, began: float, complete: bool,
    **facts: Any,
) -> dict[str, Any]:  # fmt: skip
    """Write into the set's manifest what its file holds, and the job's result with further ``facts``; returns it."""
    job.n_failures = n_failures
    counts = {"n_documents": totals.n_documents, "n_queries": totals.n_queries, "n_shared": totals.n_shared}
    content_hash = ""
    if complete:
        content_hash = totals.content_hash

    query_sets.update(
        job.workspace, query_set, complete=complete, n_failures=n_failures, content_hash=content_hash, **counts
    )

    result = {"id": job.id, "query_set": query_set, "corpus": corpus.id, **counts, "failures": n_failures}
    result |= {"complete": complete, **facts, "seconds": round(time.monotonic() - began, 3), "attempt": job.attempt}
    job.result("synthesis", result)
    return result


def query_set_id(job_id: str, config: SynthesisConfig) -> str:
    """The id of the set that a job writes: the same in every attempt, known before the job starts."""
    name = config.name or f"{config.corpus}-{config.method}-{config.per_doc}"
    return f"{slug(name)}-{sha256_text(job_id)[:8]}"


# Disjoint groups of related documents, for a method that writes queries which need several of them.
#
# Relatedness is a ranking of the corpus for every document, by BM25 with the document's text as the query. The
# strongest pair of documents that are still free makes a group, then the next one; a document left over joins the group
# of its most related document. Near-duplicates and neighbouring passages of a file are no pair: one of them would
# answer what both do. The corpus is held in memory.

# Related documents of each that are looked at: with fewer, more documents are left over.
CANDIDATES = 30
# Share of the content words of the shorter text that the other one has too.
NEAR_DUPLICATE = 0.8
# Characters of a document that are compared: about what a prompt holds.
LOOKED_AT = 8000
UNRELATED = "No two documents are related without repeating each other, so no query needs both."
UNRELATED_HINT = "Add documents on the same subjects, or use the method diverse."


@dataclass(frozen=True, slots=True)
class Group(Document):
    """Related documents that are asked about at once: a document with the id and text of the first of them, and a hash
    of them all, by which answers are kept."""

    documents: tuple[Document, ...] = ()

    @classmethod
    def of(cls, documents: Sequence[Document]) -> Group:
        """Return the group of these documents."""
        return cls(documents[0].id, documents[0].text, documents[0].title, tuple(documents))

    @property
    def content_hash(self) -> str:
        """The hashes of all documents."""
        return "+".join(document.content_hash for document in self.documents)


def documents_of(document: Document) -> tuple[Document, ...]:
    """Return the documents of a group; of any other document itself."""
    if isinstance(document, Group):
        return document.documents
    return (document,)


Fits = Callable[[int, int], bool]


def related_groups(
    workspace: Workspace, corpus: CorpusManifest, positions: Sequence[int], watch: Progress = silent
) -> list[list[tuple[int, str]]]:
    """Return groups of (position, id), each and all in the corpus's order, of the documents at ``positions``.

    Deterministic. InputError where no two documents are related.
    """
    documents = _read(workspace, corpus, positions)
    texts = [document.content[:LOOKED_AT] for document in documents]
    scores, found = _nearest(texts, range(len(texts)), corpus, watch)
    # A long document scores high with all others: relative to the best, itself, it does not.
    relative = np.divide(scores, scores.max(axis=1, keepdims=True), where=found >= 0, out=np.zeros_like(scores))
    order = np.argsort(-relative, axis=None, kind="stable")
    pairs = np.stack([order // found.shape[1], found.ravel()[order]], axis=1)
    pairs = pairs[(pairs[:, 1] >= 0) & (pairs[:, 0] != pairs[:, 1])]

    groups = grouped(pairs.tolist(), _fits(documents, corpus))
    if not groups:
        raise InputError(UNRELATED, hint=UNRELATED_HINT)

    return [[(positions[at], documents[at].id) for at in group] for group in groups]


def related_to(workspace: Workspace, corpus: CorpusManifest, document_id: str) -> Group:
    """Return a document with the one most related to it. InputError where there is none."""
    documents = _read(workspace, corpus, range(corpus.n_documents))
    own = [document.id for document in documents].index(document_id)
    _, found = _nearest([document.content[:LOOKED_AT] for document in documents], [own], corpus)

    fits = _fits(documents, corpus)
    for other in found[0].tolist():
        if other not in (own, -1) and fits(other, own):
            return Group.of([documents[own], documents[other]])

    raise InputError(UNRELATED, hint=UNRELATED_HINT)


def grouped(pairs: Sequence[Sequence[int]], fits: Fits) -> list[list[int]]:
    """Return disjoint groups of items from ``pairs``, strongest first: of 2 items, or of 3 where an item left over
    joined one. What fits with nothing is in no group."""
    group_of: dict[int, list[int]] = {}
    for most in (2, 3):
        for one, other in pairs:
            free = [item for item in (one, other) if item not in group_of]
            group = group_of.get(one) or group_of.get(other) or []
            if free and len(group) < most and fits(one, other) and all(fits(free[0], at) for at in group):
                group += free
                group_of |= dict.fromkeys(free, group)

    # Each group once, though every member points to it.
    distinct = {tuple(sorted(group)) for group in group_of.values()}
    return list(map(list, sorted(distinct)))


def _read(workspace: Workspace, corpus: CorpusManifest, positions: Sequence[int]) -> list[Document]:
    wanted = set(positions)
    numbered = enumerate(iter_documents(workspace, corpus.id, limit=max(wanted) + 1))
    return [document for position, document in numbered if position in wanted]


def _fits(documents: Sequence[Document], corpus: CorpusManifest) -> Fits:
    beside = corpus.neighbours(map(attrgetter("id"), documents))
    language = corpus.counted_language

    @lru_cache(maxsize=1 << 14)
    def content(at: int) -> frozenset[str]:
        return frozenset(content_words(documents[at].content[:LOOKED_AT], language))

    def fits(one: int, other: int) -> bool:
        if documents[other].id in beside.get(documents[one].id, ()):
            return False
        shorter = min(len(content(one)), len(content(other)))
        return len(content(one) & content(other)) < NEAR_DUPLICATE * shorter

    return fits


def _nearest(
    texts: Sequence[str], rows: Sequence[int], corpus: CorpusManifest, watch: Progress = silent
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return (scores, numbers), each (n_rows, k), of the texts that BM25 ranks first for those at ``rows``, itself
    among them, and -1 where there are fewer."""
    language = corpus.counted_language
    index = bm25.index(texts, language, watch=watch)
    k = min(CANDIDATES + 1, len(texts))
    return bm25.rank(index, [texts[row] for row in rows], k, language=language, watch=watch)
