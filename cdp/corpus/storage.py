"""Corpora, stored once: id by content, manifest, listing, finding by name, reading, deletion; recognised version."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cdp.base.errors import NotFoundError, WorkspaceError
from cdp.base.failures import FILE
from cdp.base.locks import locked, remove, staging
from cdp.base.records import Document, kept, newest_first, pages_of, place_of
from cdp.base.text import counted, pick
from cdp.base.workspace import Workspace, now, slug, write_json
from cdp.corpus.documents import Distribution, DocumentFile
from cdp.corpus.passages import neighbours
from cdp.corpus.readers import READERS, DocumentFormat
from cdp.corpus.reading import Imported, ReadResult
from cdp.corpus.sources import shown_name

# Languages written without spaces between words.
UNSPACED = frozenset(("zh", "ja", "th", "lo", "km", "my"))


@dataclass(frozen=True, kw_only=True)
class CorpusManifest(Imported):
    """A stored corpus: what was imported, and what people said of it."""

    id: str
    name: str
    created: str
    licence: str = ""
    # The id of the version before, whose documents are mostly these.
    previous: str = ""

    @property
    def unit(self) -> str:
        """What is searched and written for: ``passage`` where long files were cut, else ``document``."""
        cut = {name for name, reader in READERS.items() if isinstance(reader, DocumentFormat)}
        several = self.n_cut or any(file.n_documents > 1 and file.format in cut for file in self.files)
        return "passage" if several else "document"

    def place_of(self, id: str) -> tuple[str, str]:
        """(file, "page 3" or "pages 3–4") of a passage, "" where the format has none; of a document its id and "".

        A page that was an image says so: "page 3, recognised".
        """
        if self.unit != "passage":
            return id, ""
        file, pages = place_of(id)
        recognised = self._recognised.get(file, ()) and not self._recognised[file].isdisjoint(pages_of(id))
        return file, f"{pages}, recognised" if recognised else pages

    @cached_property
    def _recognised(self) -> dict[str, set[int]]:
        return {file.name: set(file.recognised) for file in self.files if file.recognised}

    def neighbours(self, ids: Iterable[str]) -> dict[str, list[str]]:
        """{passage: the ones right before and after it in its file, which share sentences with it}, all by id."""
        return neighbours(ids) if self.unit == "passage" else {}

    @property
    def main_language(self) -> str:
        """The most frequent language of the sample, ``unknown`` left aside; ``unknown`` if there is no other."""
        return next((language for language in self.languages if language != "unknown"), "unknown")

    @property
    def lengths(self) -> tuple[Distribution, str]:
        """Lengths of the documents, and their unit: characters in languages written without spaces, else words."""
        return (self.characters, "characters") if self.main_language in UNSPACED else (self.words, "words")

    @property
    def counted_language(self) -> str:
        """The language in which content words are counted: the most frequent one, English where unknown."""
        return "en" if self.main_language == "unknown" else self.main_language


HASH_DIGITS = 8
NONE_YET = "There is no corpus yet: add one (corpus add PATH)."


def store(
    result: ReadResult,
    name: str,
    workspace: Workspace,
    *,
    source: str | None = None,
    licence: str = "",
    previous: str = "",
) -> CorpusManifest:
    """Store what was read; return the existing corpus if the same content was stored before under any name.

    Who says a licence of content that is there already changes what was said before. ``source`` is the name to show for
    where the documents come from, if not the file's own. The folder appears whole or not at all; two processes that
    store at the same time wait for each other. WorkspaceError if the disk refuses.
    """
    licence = " ".join((licence or result.options["licence"]).split())

    try:
        with _locked(workspace):
            for manifest in list_corpora(workspace):
                if manifest.content_hash == result.content_hash:
                    return _licensed(workspace, manifest, licence)
            return _write(result, name, workspace, source or result.source, licence, previous)
    except OSError as error:
        raise WorkspaceError.refused(workspace.corpora, "written to", error) from error


def _write(
    result: ReadResult, name: str, workspace: Workspace, source: str, licence: str, previous: str
) -> CorpusManifest:
    name, source = shown_name(name), shown_name(source)
    stem = slug(name, fallback="corpus")
    corpus_id = f"{stem}-{result.content_hash[:HASH_DIGITS]}"
    if workspace.corpus(corpus_id).exists():  # the same first digits, other content
        corpus_id = f"{stem}-{result.content_hash[: 2 * HASH_DIGITS]}"

    imported = {field.name: getattr(result, field.name) for field in dataclasses.fields(Imported)} | {"source": source}

    manifest = CorpusManifest(
        **imported, id=corpus_id, name=name.strip() or stem, created=now(), licence=licence, previous=previous
    )
    with staging(workspace.corpora) as folder:
        made = folder / "corpus"
        made.mkdir()
        _copy(result.documents.path, made / "documents.parquet")
        if (result.folder / FILE).exists():
            _copy(result.folder / FILE, made / FILE)
        write_json(made / "manifest.json", dataclasses.asdict(manifest))
        made.rename(workspace.corpus(corpus_id))

    return manifest


def _licensed(workspace: Workspace, manifest: CorpusManifest, licence: str) -> CorpusManifest:
    """The stored corpus, under the licence that its second import names, if it names one."""
    if licence and licence != manifest.licence:
        manifest = dataclasses.replace(manifest, licence=licence)
        write_json(workspace.corpus(manifest.id) / "manifest.json", dataclasses.asdict(manifest))
    return manifest


def _copy(source: Path, target: Path) -> None:
    """The same bytes under another name, on disk when this returns; without copying them where possible."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
    with open(target, "rb") as file:
        os.fsync(file.fileno())


def _locked(workspace: Workspace) -> AbstractContextManager[object]:
    return locked(workspace.corpora / ".lock", "The store of corpora", wait_s=120)


def load_manifest(workspace: Workspace, corpus_id: str) -> CorpusManifest:
    """The manifest of the corpus with exactly this id; NotFoundError, or WorkspaceError if it is damaged."""
    path = workspace.corpus(corpus_id) / "manifest.json"
    if not path.exists():
        ids = [manifest.id for manifest in list_corpora(workspace)]
        raise NotFoundError("corpus", corpus_id, known=ids, hint="" if ids else NONE_YET)
    return kept(CorpusManifest, path)


def list_corpora(workspace: Workspace) -> list[CorpusManifest]:
    """All corpora, the newest first. A folder whose manifest is damaged is left out, with a warning in the log."""
    return newest_first(CorpusManifest, workspace.corpora.glob("[!.]*/manifest.json"))


def resolve_corpus(workspace: Workspace, name_or_id: str) -> CorpusManifest:
    """The corpus with this id, this name, or the only one whose id or name begins so; see ``cdp.base.text.pick``.

    A name means its newest version, an earlier one has its id.
    """
    listed = list_corpora(workspace)
    earlier = {manifest.previous for manifest in listed}
    newest = [manifest for manifest in listed if manifest.id not in earlier]
    with suppress(NotFoundError):
        return pick("corpus", name_or_id, listed if name_or_id in earlier else newest)
    return pick("corpus", name_or_id, listed, none_yet=NONE_YET)


def delete_corpus(workspace: Workspace, corpus_id: str) -> None:
    """Remove a corpus, at once for readers. Raises NotFoundError if there is none."""
    folder = workspace.corpus(corpus_id)
    if not folder.is_dir():
        load_manifest(workspace, corpus_id)

    with _locked(workspace):
        remove(folder)


def open_corpus(workspace: Workspace, corpus_id: str) -> DocumentFile:
    """The documents of a stored corpus; NotFoundError if there is none of that id."""
    path = workspace.corpus(corpus_id) / "documents.parquet"
    if not path.exists():
        load_manifest(workspace, corpus_id)
    return DocumentFile(path)


def iter_documents(
    workspace: Workspace, corpus_id: str, *, start: int = 0, limit: int | None = None
) -> Iterator[Document]:
    """The documents in order from number ``start`` (from 0), one row group in memory at a time."""
    return open_corpus(workspace, corpus_id).iter(start, limit)


# Documents of the earlier version that must be in the new one: with fewer it is another collection of the same name.
LEAST_KEPT = 0.5


@dataclass(frozen=True)
class CorpusUpdate:
    """What version ``number`` has of the one before: ``kept`` {earlier id: id}, by the same title and text."""

    previous: CorpusManifest
    kept: Mapping[str, str]
    n_new: int
    number: int

    def sentence(self) -> str:
        removed = self.previous.n_documents - len(self.kept)
        stayed = counted(len(self.kept), self.previous.unit)
        return (
            f"A new version of {self.previous.name}: {stayed} stayed; new or changed: {self.n_new:,}; of the earlier "
            f"version changed or removed: {removed:,}."
        )


def newest(workspace: Workspace, name: str) -> tuple[CorpusManifest | None, set[int]]:
    """The newest corpus of that name, and what ``read_documents`` is told of it: the hash of each document."""
    listed = list_corpora(workspace)
    earlier = {manifest.previous for manifest in listed}
    found = next((m for m in listed if m.name == name and m.id not in earlier), None)
    return found, {hash((d.title, d.text)) for d in open_corpus(workspace, found.id)} if found else set()


def find(workspace: Workspace, previous: CorpusManifest | None, result: ReadResult) -> CorpusUpdate | None:
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
    return CorpusUpdate(previous, kept, result.n_documents - len(set(kept.values())), number)
