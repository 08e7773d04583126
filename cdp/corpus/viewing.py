"""A corpus as people see it: documents page by page, its name and version, and what was not read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cdp.base.errors import NotFoundError
from cdp.base.failures import FILE, FailedItems, failed_items
from cdp.base.records import Document
from cdp.base.text import counted
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest, get_documents, iter_documents, open_corpus, resolve_corpus
from cdp.corpus.readers import file_suffixes
from cdp.corpus.reading import REPEATED


def name_of(source: Path) -> str:
    """Return a corpus's name for a file or folder: without the endings that readers know."""
    name = source.name.removesuffix(".gz")
    endings = (*file_suffixes(), ".zip")
    return next((name.removesuffix(ending) for ending in endings if name.endswith(ending)), name) or "corpus"


def scanned(manifest: CorpusManifest) -> list[str]:
    """Return the notes on PDFs most of whose pages have no text."""
    scans = (file for file in manifest.files if 2 * file.n_scanned > file.n_pages)
    begin = tuple(f"{file.name}: {file.n_scanned:,} of {file.n_pages:,} pages" for file in scans)
    return [note for note in manifest.notes if note.startswith(begin)]


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
