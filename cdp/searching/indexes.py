"""The two kinds of index over a collection: BM25's, and the embeddings of a dense retriever.

Both are kept in ``embeddings/`` of the workspace, under a hash of all that determines them: those of an evaluation on
the same texts are used again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cdp.base.errors import CdpError, WorkspaceError
from cdp.base.workspace import Workspace
from cdp.evaluation import bm25
from cdp.evaluation.evaluate import length_of
from cdp.evaluation.protocols import Protocol as EvaluationProtocol
from cdp.evaluation.protocols import protocol_for
from cdp.retrievers import load, model_hash
from cdp.retrievers.encode import EmbeddingStore, Encoding, cast, encode, precision_for
from cdp.retrievers.exact_search import Prepared, search
from cdp.retrievers.resolve import ResolvedRetriever
from cdp.searching.collection import Collection, Documents

Progress = Callable[[str, int, int], None]
"""Called with the phase, what is done and the total, in documents; may raise to end the work."""

Ranked = tuple[list[float], list[int]]
"""Scores and document numbers, best first."""

Speeds = dict[tuple[str, str], float]
"""Seconds per document, measured once: by the retriever's identity or BM25's language, and the documents' hash."""

SAMPLE = 16
"""Documents that are encoded to learn how long all would take; so few are encoded without asking."""

TERMS_SAMPLE = 400
"""The same for BM25, whose index takes as long again as splitting the texts into terms."""


class NotPreparedError(CdpError):
    """The documents have no index yet, and making it takes longer than somebody should wait for an answer."""

    kind = "configuration"

    def __init__(self, message: str, documents: int, seconds: float) -> None:
        super().__init__(message, hint="Index them first, as a job.")
        self.documents = documents
        self.seconds = seconds


def _not_prepared(retriever: str, collection: Collection, documents: int, seconds: float) -> NotPreparedError:
    message = f"{retriever} has not indexed {documents:,} documents of {collection.name} yet."
    return NotPreparedError(message, documents, seconds)


class Index(Protocol):
    """Ranks the documents of a collection for one query."""

    nbytes: int

    def rank(self, query: str, k: int) -> Ranked:
        """(scores, document numbers), best first, at most ``k``."""

    def rank_all(self, queries: Sequence[str], k: int) -> list[Ranked]:
        """The same for several queries at once, in their order."""


@dataclass(frozen=True)
class Encoder:
    """A loaded ``SentenceTransformer`` with what an evaluation under the protocol ``published`` would use it with."""

    model: Any
    identity: str
    protocol: EvaluationProtocol
    max_tokens: int | None
    lock: threading.Lock

    @property
    def nbytes(self) -> int:
        return sum(int(t.nbytes) for t in self.model.state_dict().values())

    def encoding(self, role: str, precision: str) -> Encoding:
        prompt = self.protocol.query_prompt if role == "query" else self.protocol.document_prompt
        return Encoding(self.identity, role, prompt, self.protocol.normalise, self.max_tokens, precision)


def load_encoder(resolved: ResolvedRetriever, device: str | None = "cpu") -> Encoder:
    """Load a model: on the CPU to search with, so that no job finds its GPU taken; ``None`` is a GPU if there is one.
    ModelError if it cannot be loaded."""
    model = load(resolved, device)
    identity = model_hash(model)
    model = cast(model, precision_for(model))
    return Encoder(model, identity, protocol_for(model), length_of(model), threading.Lock())


class DenseIndex:
    """The embeddings of all documents, in memory where ``held``, else mapped from disk at each search."""

    def __init__(self, encoder: Encoder, parts: Sequence[np.ndarray], *, held: bool) -> None:
        self.encoder = encoder
        prepared = Prepared(list(parts)) if held else None
        self.vectors: Any = prepared or list(parts)
        self.nbytes = 0 if prepared is None else prepared.nbytes

    def rank(self, query: str, k: int) -> Ranked:
        return self.rank_all([query], k)[0]

    def rank_all(self, queries: Sequence[str], k: int) -> list[Ranked]:
        with self.encoder.lock:  # tokenizers are not made for two threads at once
            encoding = self.encoder.encoding("query", "fp32")
            vectors = encode(self.encoder.model, queries, encoding, batch_size=len(queries))
        return _ranked(*search(vectors, self.vectors, k))


class LexicalIndex:
    """BM25 in the words of one language."""

    def __init__(self, index: Any, language: str) -> None:
        self.index, self.language = index, language
        self.nbytes = bm25.index_size(index)

    def rank(self, query: str, k: int) -> Ranked:
        return self.rank_all([query], k)[0]

    def rank_all(self, queries: Sequence[str], k: int) -> list[Ranked]:
        return _ranked(*bm25.rank(self.index, queries, k, language=self.language))


def _ranked(scores: np.ndarray, numbers: np.ndarray) -> list[Ranked]:
    """Per query, without the -1 of documents that are not retrieved."""
    rows = zip(scores, numbers, numbers >= 0, strict=True)
    return [([float(s) for s in score[there]], [int(n) for n in number[there]]) for score, number, there in rows]


def embeddings(
    workspace: Workspace,
    encoder: Encoder,
    documents: Documents,
    collection: Collection,
    *,
    name: str,
    patience_s: float | None,
    batch_size: int = 64,
    progress: Progress | None = None,
    speeds: Speeds | None = None,
) -> list[np.ndarray]:
    """The embeddings of all documents: those that are kept, in whatever precision, else encoded and kept.

    NotPreparedError if that would take longer than ``patience_s`` seconds (None: however long it takes).
    """
    store = EmbeddingStore(workspace)
    own = precision_for(encoder.model)
    ways = [encoder.encoding("document", p) for p in dict.fromkeys((own, "fp32", "fp16", "bf16"))]
    missing = [store.missing(way, documents.hash, len(documents)) for way in ways]
    encoding = ways[missing.index(0)] if 0 in missing else ways[0]
    texts: list[str] = []
    if 0 not in missing:
        with encoder.lock:
            seconds = 0.0
            if patience_s is not None and missing[0] > SAMPLE:
                key = (encoder.identity, documents.hash)
                seconds = missing[0] * _once(speeds, key, lambda: _seconds_each(encoder, documents, encoding))
        if patience_s is not None and seconds > patience_s:
            raise _not_prepared(name, collection, missing[0], seconds)
        texts = list(documents.contents())
    report = None if progress is None else lambda done, total: progress("encoding documents", done, total)
    try:
        with encoder.lock:
            return store.get(
                lambda: encoder.model,
                texts or [""] * len(documents),  # complete: only their number is looked at
                encoding,
                hash_of_texts=documents.hash,
                batch_size=batch_size,
                progress=report,
            ).parts
    except WorkspaceError:  # a disk that takes nothing: they are held in memory alone
        with encoder.lock:
            return [encode(encoder.model, texts, encoding, batch_size=batch_size, progress=report)]


def _once(speeds: Speeds | None, key: tuple[str, str], measure: Callable[[], float]) -> float:
    """What was measured before, if anything was."""
    speeds = {} if speeds is None else speeds
    if key not in speeds:
        speeds[key] = measure()
    return speeds[key]


def _seconds_each(encoder: Encoder, documents: Documents, encoding: Encoding) -> float:
    """Measured, not guessed: the seconds that one document takes here and now."""
    sample = documents.sample(SAMPLE)
    encode(encoder.model, sample[:2], encoding)  # the first call sets things up
    began = time.perf_counter()
    encode(encoder.model, sample, encoding, batch_size=16)
    return (time.perf_counter() - began) / len(sample)


def lexical(
    workspace: Workspace,
    documents: Documents,
    collection: Collection,
    language: str,
    *,
    patience_s: float | None,
    progress: Progress | None = None,
    speeds: Speeds | None = None,
) -> LexicalIndex:
    """BM25's index: the one that is kept, else made and kept. NotPreparedError as ``embeddings`` raises it."""
    folder = workspace.embeddings / bm25.index_key(documents.hash, language)
    index = bm25.load_index(folder)
    if index is not None:
        return LexicalIndex(index, language)
    if patience_s is not None and len(documents) > TERMS_SAMPLE:
        key = (language, documents.hash)
        seconds = len(documents) * _once(speeds, key, lambda: _seconds_each_terms(documents, language))
        if seconds > patience_s:
            raise _not_prepared(bm25.TITLE, collection, len(documents), seconds)
    index = bm25.index(list(documents.contents()), language, watch=progress)
    with suppress(WorkspaceError):  # a disk that takes nothing: it is held in memory alone
        bm25.save_index(index, folder)
    return LexicalIndex(index, language)


def _seconds_each_terms(documents: Documents, language: str) -> float:
    """Splitting a document into terms, and as long again for the index."""
    sample = documents.sample(TERMS_SAMPLE)
    began = time.perf_counter()
    for _ in bm25.terms_of(sample, language):
        pass
    return 2 * (time.perf_counter() - began) / len(sample)
