"""Storing a corpus, documents added again (queries and benchmarks carried over), deletion."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cdp import query_sets
from cdp.base import permission
from cdp.base.errors import ConfigError, InputError, some
from cdp.base.locks import staging
from cdp.base.text import Progress, checked_title, counted, silent
from cdp.base.workspace import Workspace, disk_faults_told
from cdp.benchmarks import subsets
from cdp.corpus import (
    CorpusManifest,
    ReadOptions,
    delete_corpus,
    iter_documents,
    list_corpora,
    read_documents,
    resolve_corpus,
    storage,
    store,
)
from cdp.corpus.looking import name_of
from cdp.corpus.storage import CorpusUpdate
from cdp.projects import forget
from cdp.query_sets import deriving
from cdp.services import access, projects
from cdp.services.queries import take

__all__ = ["iter_documents", "list_corpora", "resolve_corpus"]


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
    watch: Progress = silent,
) -> AddedCorpus:
    """Read documents from a file or folder and store them once. Queries that come with the rows become a query set."""
    reading = read(workspace, path, name=name, options=options, passwords=passwords, watch=watch)
    stated: list[str] = []
    with reading as (manifest, existed, queries, growth):
        query_set = None
        if queries:  # the same queries for the same corpus are stored once
            query_set = take(workspace, queries.items(), manifest.id, f"{manifest.name} queries").query_set.id
        if growth:
            _, _, stated = carry(workspace, growth, manifest, imported=query_set is None)

    return AddedCorpus(manifest, existed, query_set, tuple(stated))


@access.writes
def carry(
    workspace: Workspace, growth: CorpusUpdate, corpus: CorpusManifest, *, imported: bool, judged: bool = True
) -> tuple[list[str], list[str], list[str]]:
    """Carry over what was made of the earlier version, to the documents that stayed.

    ``imported`` takes query sets that came with the documents, ``judged`` benchmarks. Return the ids of the query sets,
    the names of the benchmarks, and sentences.
    """
    ids, of_sets = deriving.carry_query_sets(workspace, growth, corpus, imported=imported)
    names, of_benchmarks = subsets.carry_benchmarks(workspace, growth, corpus) if judged else ([], [])

    return ids, names, [growth.sentence(), *of_sets, *of_benchmarks]


@access.writes
@contextmanager
def read(
    workspace: Workspace,
    path: str | Path,
    *,
    name: str = "",
    options: ReadOptions | None = None,
    passwords: Sequence[str] = (),
    watch: Progress = silent,
) -> Iterator[tuple[CorpusManifest, bool, dict[str, list[str]], CorpusUpdate | None]]:
    """Read documents and store them once: the corpus, whether it existed, the queries that came with the rows, and what
    it has of an earlier version.

    The caller stores the queries.
    """
    source = permission.to_read(workspace, path)
    if not source.exists():
        raise InputError(f"There is no file or folder {source}.", hint="Check the path; it is read on the server.")

    existing_ids = {manifest.id for manifest in list_corpora(workspace)}
    title = checked_title(name) or name_of(source)
    newest, earlier = storage.newest(workspace, title)
    with (
        disk_faults_told("The import"),
        staging(workspace.corpora) as scratch,
        read_documents(source, options, scratch=scratch, watch=watch, passwords=passwords, earlier=earlier) as result,
    ):
        growth = storage.find(workspace, newest, result)
        manifest = store(result, title, workspace, source=source.name, previous=growth.previous.id if growth else "")
        existed = manifest.id in existing_ids
        if existed:
            about = ("notes", "rejected", "rejected_counts", "files", "n_files", "n_files_failed")
            manifest = dataclasses.replace(manifest, **{name: getattr(result, name) for name in about})

        yield manifest, existed, result.queries, None if existed else growth


@access.writes
def delete(workspace: Workspace, corpus: str) -> None:
    """Remove a corpus, also from its projects. ConfigError while query sets were made for it, or a job needs it."""
    manifest = resolve_corpus(workspace, corpus)
    users = [q.name for q in query_sets.list_query_sets(workspace) if q.corpus_id == manifest.id]
    if users:
        raise ConfigError(
            f"The corpus {manifest.name} has {counted(len(users), 'query set')} ({some(users, 5)}).",
            hint="Remove those first: queries delete NAME, or on the page Queries.",
        )
    projects.check_unused(workspace, f"The corpus {manifest.name}", manifest.id)
    delete_corpus(workspace, manifest.id)
    forget(workspace, corpus=manifest.id)
