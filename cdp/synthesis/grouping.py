"""Disjoint groups of related documents, for a method that writes queries which need several of them.

Relatedness is a ranking of the corpus for every document, by BM25 with the document's text as the query. The strongest
pair of documents that are still free makes a group, then the next one; a document left over joins the group of its
most related document. Near-duplicates and neighbouring passages of a file are no pair: one of them would answer what
both do. The corpus is held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.complexity import content_words
from cdp.corpus import CorpusManifest, iter_documents
from cdp.retrievers import bm25

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
    return document.documents if isinstance(document, Group) else (document,)


Watch = Callable[[str, int, int], None]
Fits = Callable[[int, int], bool]


def related_groups(
    workspace: Workspace, corpus: CorpusManifest, positions: Sequence[int], watch: Watch | None = None
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
    own = next(at for at, document in enumerate(documents) if document.id == document_id)
    _, found = _nearest([document.content[:LOOKED_AT] for document in documents], [own], corpus)
    fits = _fits(documents, corpus)
    other = next((other for other in found[0].tolist() if other not in (own, -1) and fits(other, own)), None)
    if other is None:
        raise InputError(UNRELATED, hint=UNRELATED_HINT)
    return Group.of([documents[own], documents[other]])


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
    return sorted({id(group): sorted(group) for group in group_of.values()}.values())


def _read(workspace: Workspace, corpus: CorpusManifest, positions: Sequence[int]) -> list[Document]:
    wanted = set(positions)
    numbered = enumerate(iter_documents(workspace, corpus.id, limit=max(wanted) + 1))
    return [document for position, document in numbered if position in wanted]


def _fits(documents: Sequence[Document], corpus: CorpusManifest) -> Fits:
    beside = corpus.neighbours(document.id for document in documents)
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
    texts: Sequence[str], rows: Sequence[int], corpus: CorpusManifest, watch: Watch | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return (scores, numbers), each (n_rows, k), of the texts that BM25 ranks first for those at ``rows``, itself
    among them, and -1 where there are fewer."""
    language = corpus.counted_language
    index = bm25.index(texts, language, watch=watch)
    k = min(CANDIDATES + 1, len(texts))
    return bm25.rank(index, [texts[row] for row in rows], k, language=language, watch=watch)
