"""A corpus that grows: documents added again under the same name keep the queries and judgments of those that stayed.

A stored corpus never changes, so that results lead back to it: the documents make a new version, which names the one
before. Query sets and benchmarks of that one are carried over to the documents that it has word for word.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from cdp import query_sets
from cdp.base.errors import CdpError, InputError
from cdp.base.text import counted
from cdp.base.workspace import Workspace, slug
from cdp.benchmarks import beir_files, library, manifests
from cdp.benchmarks.benchmark import part, qrels_files
from cdp.corpus import CorpusManifest, ReadResult, iter_documents, list_corpora, open_corpus
from cdp.query_sets import deriving
from cdp.services import access

# Documents of the earlier version that must be in the new one: with fewer it is another collection of the same name.
LEAST_KEPT = 0.5


@dataclass(frozen=True)
class Growth:
    """What version ``number`` has of the one before: ``kept`` {earlier id: id}, by the same title and text."""

    previous: CorpusManifest
    kept: Mapping[str, str]
    n_new: int
    number: int

    def sentence(self) -> str:
        gone = self.previous.n_documents - len(self.kept)
        stayed = counted(len(self.kept), self.previous.unit)
        return (
            f"A new version of {self.previous.name}: {stayed} stayed; new or changed: {self.n_new:,}; of the earlier "
            f"version changed or removed: {gone:,}."
        )


def newest(workspace: Workspace, name: str) -> tuple[CorpusManifest | None, set[int]]:
    """The newest corpus of that name, and what ``read_documents`` is told of it: the hash of each document."""
    listed = list_corpora(workspace)
    earlier = {manifest.previous for manifest in listed}
    found = next((m for m in listed if m.name == name and m.id not in earlier), None)
    return found, {hash((d.title, d.text)) for d in open_corpus(workspace, found.id)} if found else set()


def find(workspace: Workspace, previous: CorpusManifest | None, result: ReadResult) -> Growth | None:
    """What was read has of ``previous``, if it is most of its documents and not stored yet."""
    listed = list_corpora(workspace)
    if previous is None or any(manifest.content_hash == result.content_hash for manifest in listed):
        return None
    by_content: dict[int, list[str]] = {}
    for document in result.documents:
        by_content.setdefault(hash((document.title, document.text)), []).append(document.id)
    kept: dict[str, str] = {}
    for document in open_corpus(workspace, previous.id):
        ids = by_content.get(hash((document.title, document.text)), [])
        if ids:  # passages before it may have moved its number
            kept[document.id] = document.id if document.id in ids else ids[0]
    if len(kept) < LEAST_KEPT * previous.n_documents:
        return None
    number = 1 + sum(manifest.name == previous.name for manifest in listed)
    return Growth(previous, kept, result.n_documents - len(set(kept.values())), number)


@access.writes
def carry_query_sets(
    workspace: Workspace, growth: Growth, corpus: CorpusManifest, *, imported: bool
) -> tuple[list[str], list[str]]:
    """Carry over the query sets, without their negatives; ``imported`` also those that came with the documents.

    Return their ids, and a sentence for each with what became stale.
    """
    ids, said = [], []
    for source in query_sets.list_query_sets(workspace):
        if source.corpus_id != growth.previous.id or (source.imported and not imported):
            continue
        name = re.sub(r" v\d+$", "", source.name) + f" v{growth.number}"
        with suppress(InputError):  # none of its documents stayed
            made = deriving.derive(
                workspace, source, lambda line: line.queries, name, {}, moved=(corpus, growth.kept)
            ).query_set
            n = source.n_queries - made.n_queries
            carried = {"grown_from": growth.previous.id, "carried": {"from": source.id, "stale": n}}
            query_sets.update(workspace, made.id, parameters={**made.parameters, **carried})
            ids.append(made.id)
            stale = f"; {n:,} are stale" if n else ""
            said.append(f"Carried over as {made.name}: {counted(made.n_queries, 'query', 'queries')}{stale}.")
    return ids, said


@access.writes
def carry_benchmarks(workspace: Workspace, growth: Growth, corpus: CorpusManifest) -> tuple[list[str], list[str]]:
    """Carry over the benchmarks made of the earlier version: (their names, a sentence for each).

    A query stays if all documents that answer it do. New documents are not judged yet.
    """
    names, said = [], []
    for name in library.list_names(workspace):
        folder = workspace.benchmark(name)
        with suppress(CdpError):
            manifest = manifests.read(folder)
            if manifest.source.get("corpus") != growth.previous.id:
                continue
            texts = {query: line.text for query, line in beir_files.read_queries(part(folder, "queries")).items()}
            judged: dict[str, dict[str, dict[str, int]]] = {}
            for split, file in qrels_files(folder).items():
                grades = beir_files.read_qrels(file).grades
                judged[split] = {
                    query: {growth.kept[d]: grade for d, grade in by_document.items() if d in growth.kept}
                    for query, by_document in grades.items()
                    if all(d in growth.kept for d, grade in by_document.items() if grade >= manifest.relevant_from)
                }
            kept = {query for by_query in judged.values() for query in by_query}
            if not kept:
                continue
            taken, stem = set(library.list_names(workspace)), re.sub(r"-v\d+$", "", slug(name))
            numbers = range(growth.number, growth.number + len(taken) + 1)
            free = next(f"{stem}-v{n}" for n in numbers if f"{stem}-v{n}" not in taken)
            facts = {**manifest.source, "corpus": corpus.id, "unit": corpus.unit, "grown_from": name}
            made = library.make(
                workspace, free, iter_documents(workspace, corpus.id), {q: texts[q] for q in kept}, judged,
                dataclasses.replace(manifest, source=facts, counts={}, files=()),
            )  # fmt: skip
            names.append(made)
            stale = f"; {len(texts) - len(kept):,} are stale" if len(kept) < len(texts) else ""
            unjudged = f" Not judged yet: {counted(growth.n_new, f'new {corpus.unit}')}." if growth.n_new else ""
            queries = counted(len(kept), "judged query", "judged queries")
            said.append(f"Benchmark {made}: {queries} carried over{stale}.{unjudged}")
    return names, said
