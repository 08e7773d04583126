"""Corpora: add documents from a path, look at them, delete them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cdp import projects as room
from cdp import query_sets
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.failures import FILE, FailedItems, failed_items
from cdp.base.records import Document
from cdp.base.staging import staging
from cdp.base.text import checked_title, counted
from cdp.base.workspace import Workspace, disk_faults_told
from cdp.corpus import (
    CorpusManifest,
    ReadOptions,
    delete_corpus,
    get_documents,
    iter_documents,
    list_corpora,
    open_corpus,
    read_documents,
    resolve_corpus,
    store,
)
from cdp.corpus.readers import file_suffixes
from cdp.corpus.reading import REPEATED, Watch
from cdp.query_sets import QuerySet
from cdp.services import access, growing, projects
from cdp.services.growing import Growth

__all__ = ["list_corpora", "resolve_corpus"]


@dataclass(frozen=True)
class AddedCorpus:
    """The corpus that was added, and the query set if the rows carried queries.

    ``corpus`` names the notes and rejected rows of this reading, also where the same content was stored before;
    ``stated`` says what was carried over from an earlier version.
    """

    corpus: CorpusManifest
    existed: bool
    query_set: str | None
    stated: tuple[str, ...] = ()


@access.writes
def add(
    workspace: Workspace,
    path: str | Path,
    *,
    name: str = "",
    options: ReadOptions | None = None,
    passwords: Sequence[str] = (),
    watch: Watch | None = None,
) -> AddedCorpus:
    """Read documents from a file or folder and store them once. Queries that come with the rows become a query set."""
    reading = read(workspace, path, name=name, options=options, passwords=passwords, watch=watch)
    stated: list[str] = []
    with reading as (manifest, existed, queries, growth):
        query_set = None
        if queries:  # the same queries for the same corpus are stored once
            query_set = query_sets.import_queries(
                queries.items(), workspace, manifest.id, name=f"{manifest.name} queries"
            ).query_set.id
        if growth:
            _, said = growing.carry_benchmarks(workspace, growth, manifest)
            _, carried = growing.carry_query_sets(workspace, growth, manifest, imported=query_set is None)
            stated += [growth.sentence(), *carried, *said]
    return AddedCorpus(manifest, existed, query_set, tuple(stated))


@access.writes
@contextmanager
def read(
    workspace: Workspace,
    path: str | Path,
    *,
    name: str = "",
    options: ReadOptions | None = None,
    passwords: Sequence[str] = (),
    watch: Watch | None = None,
) -> Iterator[tuple[CorpusManifest, bool, dict[str, list[str]], Growth | None]]:
    """Read documents and store them once: the corpus, whether it existed, the queries that came with the rows, and what
    it has of an earlier version.

    The caller stores the queries.
    """
    source = access.to_read(workspace, path)
    if not source.exists():
        raise InputError(f"There is no file or folder {source}.", hint="Check the path; it is read on the server.")
    existing_ids = {manifest.id for manifest in list_corpora(workspace)}
    title = checked_title(name) or name_of(source)
    newest, earlier = growing.newest(workspace, title)
    with (
        disk_faults_told("The import"),
        staging(workspace.corpora) as scratch,
        read_documents(source, options, scratch=scratch, watch=watch, passwords=passwords, earlier=earlier) as result,
    ):
        growth = growing.find(workspace, newest, result)
        manifest = store(result, title, workspace, source=source.name, previous=growth.previous.id if growth else "")
        existed = manifest.id in existing_ids
        if existed:
            about = ("notes", "rejected", "rejected_counts", "files", "n_files", "n_files_failed")
            manifest = dataclasses.replace(manifest, **{name: getattr(result, name) for name in about})
        yield manifest, existed, result.queries, None if existed else growth


def name_of(source: Path) -> str:
    """Return a corpus's name for a file or folder: without the endings that readers know."""
    name = source.name.removesuffix(".gz")
    endings = (*file_suffixes(), ".zip")
    return next((name.removesuffix(ending) for ending in endings if name.endswith(ending)), name) or "corpus"


def q_doc_notes(workspace: Workspace, query_sets: Iterable[QuerySet]) -> list[str]:
    """Return what Q/Doc counts where the files of one of these corpora were cut; else nothing."""
    cut = {manifest.id for manifest in list_corpora(workspace) if manifest.unit == "passage"}
    whole = cut.isdisjoint(query_set.corpus_id for query_set in query_sets)
    return [] if whole else ["Q/Doc counts queries per passage where files were cut into passages."]


def scanned(manifest: CorpusManifest) -> list[str]:
    """Return the notes on PDFs most of whose pages have no text."""
    scans = (file for file in manifest.files if 2 * file.n_scanned > file.n_pages)
    begin = tuple(f"{file.name}: {file.n_scanned:,} of {file.n_pages:,} pages" for file in scans)
    return [note for note in manifest.notes if note.startswith(begin)]


def losses(manifest: CorpusManifest) -> list[str]:
    """Return the files of which less than 98% of the words came out, each with what is missing."""
    return [f"{file.name}: {file.loss}" for file in manifest.files if file.loss]


def problem(manifest: CorpusManifest) -> str:
    """Return which share was not read, in a sentence; empty where nothing is missing but a few rows."""
    failed, said = manifest.n_files_failed, []
    if failed:
        said.append(f"{failed:,} of {counted(manifest.n_files + failed, 'file')} could not be read.")
    rows = manifest.n_rejected - manifest.rejected_counts.get(REPEATED, 0) - failed
    if 10 * rows > manifest.n_documents:
        said.append(f"{counted(rows, 'row')} could not be read.")
    if scans := scanned(manifest):
        said.append(f"Most pages of {counted(len(scans), 'PDF')} have no text: run OCR first (for example OCRmyPDF).")
    if lost := losses(manifest):
        said.append(f"Words of {counted(len(lost), 'file')} are missing.")
    return " ".join(said)


def titles(manifests: Sequence[CorpusManifest]) -> dict[str, str]:
    """Return {id: name}, with the version of a corpus that has others."""
    grown = {m.previous for m in manifests}
    earlier = {m.id: f" (earlier version of {m.created[:10]}, {counted(m.n_documents, m.unit)})" for m in manifests}
    newest = {m.id: " (newest version)" if m.previous else "" for m in manifests}
    return {m.id: m.name + (earlier if m.id in grown else newest)[m.id] for m in manifests}


def failed(workspace: Workspace, corpus: str) -> FailedItems:
    """Return the rows that failed by an unexpected error, with their texts and tracebacks."""
    manifest = resolve_corpus(workspace, corpus)
    path = workspace.corpus(manifest.id) / FILE
    return failed_items(path)


def page(workspace: Workspace, corpus: str, offset: int = 0, limit: int = 20, search: str = "") -> list[Document]:
    """Return documents ``offset`` … ``offset + limit - 1`` in corpus order; with ``search`` those that contain it."""
    manifest = resolve_corpus(workspace, corpus)
    if search:
        return open_corpus(workspace, manifest.id).search(search, offset + limit)[offset:]
    return list(iter_documents(workspace, manifest.id, start=offset, limit=limit))


def document(workspace: Workspace, corpus: str, document_id: str) -> Document:
    """Return one document. NotFoundError if the corpus has none of that id."""
    manifest = resolve_corpus(workspace, corpus)
    documents = get_documents(workspace, manifest.id, [document_id])
    if document_id not in documents:
        first = [item.id for item in iter_documents(workspace, manifest.id, limit=5)]
        raise NotFoundError("document", document_id, hint=f"The first ids are: {', '.join(first)}.")
    return documents[document_id]


@access.writes
def delete(workspace: Workspace, corpus: str) -> None:
    """Remove a corpus, also from its projects. ConfigError while query sets were made for it, or a job needs it."""
    manifest = resolve_corpus(workspace, corpus)
    users = [q.name for q in query_sets.list_query_sets(workspace) if q.corpus_id == manifest.id]
    if users:
        raise ConfigError(
            f"The corpus {manifest.name} has {len(users)} query sets ({', '.join(users[:5])}).",
            hint="Remove those first.",
        )
    projects.check_unused(workspace, f"The corpus {manifest.name}", manifest.id)
    delete_corpus(workspace, manifest.id)
    room.forget(workspace, corpus=manifest.id)
