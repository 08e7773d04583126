"""What a synthesis job has to do: which documents, and for a method that works from queries, which queries of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.records import Document
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, sha256_text, slug
from cdp.corpus import CorpusManifest, get_documents, iter_documents
from cdp.corpus.documents import permutation
from cdp.query_sets.store import Totals, known_language
from cdp.synthesis.grouping import Group, Watch, documents_of, related_groups
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
        """Return True if the document at this position of the corpus is asked about."""
        return position < self.positions if self.drawn is None else position in self.drawn

    def items(self, workspace: Workspace, *, start: int = 0, groups: Groups | None = None) -> Iterator[Item]:
        """The documents from position ``start`` on, streamed, in the order of the corpus; or the ``groups``."""
        for at in range(0, len(groups or ()), BLOCK):
            block = (groups or [])[at : at + BLOCK]
            found = get_documents(workspace, self.corpus_id, [name for group in block for _, name in group])
            for group in block:
                (position, _), *others = group
                members = Group.of([found[name] for _, name in group])
                yield Item(position, members, others=tuple(other for other, _ in others))
        if groups is not None:
            return
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

    def groups(self, workspace: Workspace, corpus: CorpusManifest, watch: Watch | None = None) -> Groups:
        """The groups of related documents that a joint method is asked about."""
        taken = [position for position in range(self.positions) if self.takes(position)]
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
    kept = ["max_document_tokens", "limit", *(key for key in ("prompt", "source") if values[key])]
    kept += ["draw"] if config.limit is not None and config.draw is not None else []
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
            parameters={**parameters, **{key: values[key] for key in kept}},
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
    content_hash = totals.content_hash if complete else ""
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
