"""Answers queries, and holds what it needs for the next one."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from cdp.base.errors import ModelError
from cdp.base.workspace import Workspace
from cdp.evaluation import bm25
from cdp.retrievers.resolve import ResolvedRetriever, resolve
from cdp.searching.collection import Collection, Documents, open_documents, resolve_collection
from cdp.searching.indexes import (
    DenseIndex,
    Encoder,
    Index,
    LexicalIndex,
    NotPreparedError,
    Progress,
    Speeds,
    embeddings,
    lexical,
    load_encoder,
)
from cdp.searching.limits import patience_seconds
from cdp.searching.matches import matching_words
from cdp.searching.memory import Held

__all__ = ["Engine", "NotPreparedError", "prepare"]

SHOWN_CHARACTERS = 20_000
"""Of a document's text in an answer; the whole is on the Corpus page."""

MODEL_OVERHEAD = 64 << 20
"""Bytes that a loaded model takes beside its weights: tokenizer, buffers."""


class Engine:
    """The (retriever, collection) pairs in use. May be asked by several threads at once.

    ``limit`` bounds what is held, in bytes; ``patience_s`` is how long an index may take to make, by default
    ``$CDP_SEARCH_INDEX_SECONDS`` or 15.
    """

    def __init__(self, workspace: Workspace, limit: int, patience_s: float | None = None) -> None:
        self.workspace = workspace
        self.held = Held(limit)
        self.patience_s = patience_seconds() if patience_s is None else patience_s
        self.speeds: Speeds = {}

    def search(
        self, retriever: str, collection: str, query: str, k: int, progress: Progress | None = None
    ) -> dict[str, Any]:
        """The ``k`` best documents: ``hits`` (id, title, text, score, words that match), ``title`` of the retriever,
        and ``seconds`` of getting ready and of searching. CdpError where there is no such retriever or collection, or
        none to use."""
        began = time.perf_counter()
        searched = self._collection(collection)
        documents = self._documents(searched)
        title, index = self._index(retriever, searched, documents, progress)
        ready = time.perf_counter()
        scores, numbers = index.rank(query, k)
        hits = [
            {
                **asdict(document),
                "text": document.text[:SHOWN_CHARACTERS],
                "score": score,
                "words": matching_words(query, document.content, searched.language),
            }
            for document, score in zip(documents.take(numbers), scores, strict=True)
        ]
        seconds = {"ready": ready - began, "search": time.perf_counter() - ready}
        return {"title": title, "hits": hits, "seconds": seconds, "documents": len(documents)}

    def status(self) -> dict[str, Any]:
        """What is held, by name, and its bytes."""
        return {"held": [str(key) for key in self.held.keys()], "bytes": self.held.nbytes}  # noqa: SIM118

    def _collection(self, name: str) -> Collection:
        try:
            return resolve_collection(self.workspace, name)
        except Exception:
            self.held.drop(lambda key: isinstance(key, tuple) and name in key)  # it is gone, and so is its use
            raise

    def _documents(self, collection: Collection) -> Documents:
        return self.held.get(
            ("documents", collection.id),
            collection.state,
            lambda: open_documents(self.workspace, collection),
            lambda documents: documents.nbytes,
        )

    def _index(
        self, retriever: str, collection: Collection, documents: Documents, progress: Progress | None
    ) -> tuple[str, Index]:
        language = bm25.language_in(retriever)
        if language is not None:
            language = language or collection.language
            bm25.check_language(language)
            words = language
            lexical_index: LexicalIndex = self.held.get(
                ("index", retriever, collection.id),
                documents.hash,
                lambda: _warmed(
                    lexical(
                        self.workspace,
                        documents,
                        collection,
                        words,
                        patience_s=self.patience_s,
                        progress=progress,
                        speeds=self.speeds,
                    )
                ),
                lambda index: index.nbytes,
            )
            return bm25.TITLE if language == "en" else f"{bm25.TITLE} ({language})", lexical_index
        resolved = available(self.workspace, retriever)
        state = _state(resolved)
        encoder: Encoder = self.held.get(
            ("model", retriever),
            state,
            lambda: load_encoder(resolved),
            lambda encoder: encoder.nbytes + MODEL_OVERHEAD,
        )

        def dense() -> DenseIndex:
            parts = embeddings(
                self.workspace,
                encoder,
                documents,
                collection,
                name=resolved.title,
                patience_s=self.patience_s,
                progress=progress,
                speeds=self.speeds,
            )
            in_memory = sum(part.size for part in parts) * 4
            return _warmed(DenseIndex(encoder, parts, held=in_memory <= self.held.limit // 2))

        index: DenseIndex = self.held.get(
            ("index", retriever, collection.id), (state, documents.hash), dense, lambda index: index.nbytes
        )
        return resolved.title, index


_I = TypeVar("_I", LexicalIndex, DenseIndex)


def _warmed(index: _I) -> _I:
    """The index, asked once: what libraries load at their first call does not count as searching."""
    index.rank("a", 1)
    return index


def available(workspace: Workspace, retriever: str) -> ResolvedRetriever:
    """The retriever, if it is on this machine: a search downloads nothing. ModelError, NotFoundError otherwise."""
    resolved = resolve(retriever, workspace, check_hub=False)
    if not resolved.local:
        raise ModelError(
            f"The model {resolved.name} is not on this machine yet.",
            hint="Index the documents with it as a job, or evaluate it once: either downloads it.",
        )
    return resolved


def _state(resolved: ResolvedRetriever) -> Hashable:
    """Changes when the files of a model do: a training that was resumed writes another one under the same id."""
    folder = Path(resolved.source)
    if not folder.is_dir():
        return resolved.source
    files = sorted((e for e in os.scandir(folder) if e.is_file()), key=lambda e: e.name)
    return (str(folder), *((e.name, e.stat().st_mtime_ns, e.stat().st_size) for e in files))


def prepare(workspace: Workspace, retriever: str, collection: str, progress: Progress) -> int:
    """Make and keep the index of a collection, however long it takes; the number of documents. On a GPU if there is
    one. ``progress`` may raise to end the work: what is done stays."""
    searched = resolve_collection(workspace, collection)
    documents = open_documents(workspace, searched)
    language = bm25.language_in(retriever)
    if language is not None:
        lexical(workspace, documents, searched, language or searched.language, patience_s=None, progress=progress)
        return len(documents)
    progress("loading the model", 0, 0)
    resolved = resolve(retriever, workspace)
    encoder = load_encoder(resolved, None)
    embeddings(
        workspace,
        encoder,
        documents,
        searched,
        name=resolved.title,
        patience_s=None,
        batch_size=128,
        progress=progress,
    )
    return len(documents)
