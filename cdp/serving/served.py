"""The retriever that is served, with the index of its corpus where it has one: texts in, vectors or documents out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.config import ServingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.evaluation import bm25
from cdp.retrievers.encode import encode, precision_for
from cdp.retrievers.load import use_threads
from cdp.retrievers.resolve import ResolvedRetriever, resolve
from cdp.retrievers.token_counts import token_counts
from cdp.searching.collection import Collection, Documents, open_documents, resolve_collection
from cdp.searching.indexes import DenseIndex, Encoder, Index, Ranked, embeddings, lexical, load_encoder

QUERY, DOCUMENT, SEARCH = "query", "document", "search"
"""What a batch is for; the first two are roles of a text, as retrievers have prompts for."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Plan:
    """What will be served, looked up but not loaded yet. ``resolved`` is None for BM25."""

    config: ServingConfig
    name: str
    title: str
    resolved: ResolvedRetriever | None
    collection: Collection | None


def plan(workspace: Workspace, config: ServingConfig) -> Plan:
    """Look up retriever and corpus. CdpError where there is no such thing, ConfigError where nothing could be asked."""
    collection = resolve_collection(workspace, config.corpus) if config.corpus else None
    language = bm25.language_in(config.retriever)
    if language is not None:
        if collection is None:
            raise ConfigError("BM25 searches, and gives no embeddings.", hint="Name a corpus: --corpus ID.")
        bm25.check_language(language)
        return Plan(config, config.name or config.retriever.strip(), bm25.TITLE, None, collection)
    resolved = resolve(config.retriever, workspace)
    # A folder's path tells of this machine; whoever asks needs a word to name the model by, no more.
    own = Path(resolved.source).name if resolved.origin == "folder" else resolved.name
    return Plan(config, config.name or own, resolved.title, resolved, collection)


@dataclass(frozen=True)
class Embedding:
    """One text's vector (dim,) float32, the tokens that were read of it, and whether there were more."""

    vector: np.ndarray
    tokens: int
    cut: bool


class Served:
    """A loaded plan. ``run`` is for one thread at a time."""

    def __init__(self, made: Plan, encoder: Encoder | None, index: Index | None, documents: Documents | None) -> None:
        self.plan, self.encoder, self.index, self.documents = made, encoder, index, documents
        self.dimensions = 0 if encoder is None else int(encoder.model.get_embedding_dimension() or 0)
        self.precision = "" if encoder is None else precision_for(encoder.model)

    def run(self, kind: str, items: list[Any]) -> Sequence[Any]:
        """``items`` are texts, or for SEARCH pairs of a query and how many documents it wants."""
        return self.search(items) if kind == SEARCH else self.embed(kind, items)

    def embed(self, role: str, texts: list[str]) -> list[Embedding]:
        """As an evaluation embeds them: the same prompt, length, precision and normalisation."""
        encoder = self.encoder
        assert encoder is not None, "requests for embeddings are refused where there is no model"
        encoding = encoder.encoding(role, self.precision)
        with encoder.lock:
            counts, cut = token_counts(encoder.model, texts, encoding.prompt)
            vectors = encode(encoder.model, texts, encoding, batch_size=len(texts)).astype(np.float32, copy=False)
        return [Embedding(*values) for values in zip(vectors, counts, cut, strict=True)]

    def search(self, items: Sequence[tuple[str, int]]) -> list[Ranked]:
        """The best documents of each query. One search over all: the best 5 are the first 5 of the best 100."""
        assert self.index is not None, "searches are refused where there is no corpus"
        most = max(k for _, k in items)
        ranked = self.index.rank_all([query for query, _ in items], most)
        return [(scores[:k], numbers[:k]) for (scores, numbers), (_, k) in zip(ranked, items, strict=True)]


def load(workspace: Workspace, made: Plan, progress: Progress) -> Served:
    """Load the model and make or open the index, however long that takes. CdpError if it cannot be done."""
    collection = made.collection
    documents = None if collection is None else open_documents(workspace, collection)
    if made.resolved is None:
        assert collection is not None
        assert documents is not None
        language = bm25.language_in(made.config.retriever) or collection.language
        progress("indexing", 0, len(documents))
        index: Index = lexical(workspace, documents, collection, language, patience_s=None, progress=progress)
        index.rank("a", 1)
        return Served(made, None, index, documents)
    progress("loading the model", 0, 0)
    encoder = load_encoder(made.resolved, "cpu" if made.config.device == "cpu" else None)
    use_threads(encoder.model, made.config.threads)
    served = Served(made, encoder, None, documents)
    if collection is not None and documents is not None:
        parts = embeddings(
            workspace, encoder, documents, collection, name=made.title, patience_s=None, progress=progress
        )
        served.index = DenseIndex(encoder, parts, held=True)
        served.index.rank("a", 1)
    served.embed(QUERY, ["a"])  # what the libraries load at their first call is there before the first request
    return served
