"""What a synthesis job has to do: which documents, and for a method that works from queries, which queries of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest, iter_documents
from cdp.corpus.draws import permutation
from cdp.synthesis.methods import Method


@dataclass(frozen=True)
class Item:
    """One document, its position in the corpus, and the queries it comes with."""

    position: int
    document: Document
    queries: tuple[str, ...] = ()


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
        drawn = None
        if config.draw is not None and n < corpus.n_documents:
            drawn = frozenset(permutation(corpus.n_documents, config.draw)[:n].tolist())
        positions = n if drawn is None else corpus.n_documents
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
        """Whether the document at this position of the corpus is asked about."""
        return position < self.positions if self.drawn is None else position in self.drawn

    def items(self, workspace: Workspace, *, start: int = 0) -> Iterator[Item]:
        """The documents from position ``start`` on, streamed, in the order of the corpus."""
        documents = iter_documents(workspace, self.corpus_id, start=start, limit=self.positions - start)
        numbered = enumerate(documents, start=start)
        if not self.source:
            for position, document in numbered:
                if self.takes(position):
                    yield Item(position, document)
            return
        for line in query_sets.iter_lines(workspace, self.source):
            if line["position"] < start or not self.takes(line["position"]):
                continue
            for position, document in numbered:
                if position == line["position"]:
                    yield Item(position, document, tuple(line["queries"]))
                    break
