"""Query sets on disk: ``queries/<id>/manifest.json`` and ``queries.jsonl``, one line per document in corpus order."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError, NotFoundError, WorkspaceError
from cdp.base.names import pick
from cdp.base.records import Query, checked
from cdp.base.staging import staging
from cdp.base.workspace import Workspace, now, read_json, read_jsonl, write_json
from cdp.corpus import CorpusManifest
from cdp.corpus.origin import of_manifest, written_by

MANIFEST = "manifest.json"
QUERIES = "queries.jsonl"
FAILURES = "failures.jsonl"
RANKINGS = "rankings.jsonl"
_log = logging.getLogger(__name__)
NONE_YET = "There is none yet: write some (queries generate) or import some (queries import)."


@dataclass(frozen=True)
class QuerySet:
    """The manifest of a query set.

    ``kind`` is "synthetic", "human", or "unknown" where nobody said who wrote imported queries. ``per_doc`` is what was
    asked for per document; of an imported set, the most that a document has. ``n_documents`` counts those that have
    queries; ``n_failures`` those that were asked about and have none, and of an imported set the rejected rows.
    ``content_hash`` (16 hex digits over ids and queries) is empty until the set is complete.
    """

    id: str
    name: str
    corpus_id: str
    corpus_hash: str
    kind: str = "synthetic"
    method: str = ""
    generator: str = ""
    model: str = ""
    per_doc: int = 0
    prompt_hash: str = ""
    language: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    created: str = field(default_factory=now)
    complete: bool = False
    n_documents: int = 0
    n_queries: int = 0
    n_failures: int = 0
    job_id: str = ""
    content_hash: str = ""
    licence: str = ""

    @property
    def imported(self) -> bool:
        """Whether the queries were there already."""
        return self.generator == "import"

    @property
    def written_by(self) -> str:
        """Who wrote the queries, in words."""
        return written_by(self.kind, self.generator, self.model)


def create(workspace: Workspace, query_set: QuerySet) -> QuerySet:
    """Write the manifest of a new query set; ConfigError where one of that id is there."""
    path = workspace.query_set(query_set.id) / MANIFEST
    if path.exists():
        raise ConfigError(f"There is already a query set {query_set.id!r}.")
    write_json(path, dataclasses.asdict(query_set))
    return query_set


def update(workspace: Workspace, query_set_id: str, **changes: Any) -> QuerySet:
    """Change fields of a manifest atomically; returns the new one."""
    changed = dataclasses.replace(load(workspace, query_set_id), **changes)
    write_json(workspace.query_set(query_set_id) / MANIFEST, dataclasses.asdict(changed))
    return changed


def load(workspace: Workspace, query_set_id: str) -> QuerySet:
    """The manifest of one query set by its exact id; NotFoundError otherwise."""
    path = workspace.query_set(query_set_id) / MANIFEST
    if not path.exists():
        raise NotFoundError("query set", query_set_id, known=[item.id for item in list_query_sets(workspace)])
    return _from_dict(read_json(path), path)


def list_query_sets(workspace: Workspace) -> list[QuerySet]:
    """Every query set, newest first. One whose manifest is damaged is left out, with a warning in the log."""
    found: list[QuerySet] = []
    for path in workspace.queries.glob(f"[!.]*/{MANIFEST}"):
        try:
            found.append(_from_dict(read_json(path), path))
        except WorkspaceError as error:
            _log.warning("%s", error)
    return sorted(found, key=lambda item: (item.created, item.id), reverse=True)


def resolve_query_set(workspace: Workspace, name: str) -> QuerySet:
    """The query set with this id, this name, or the only one whose id or name begins so; see ``names.pick``."""
    return pick("query set", name, list_query_sets(workspace), none_yet=NONE_YET)


def delete(workspace: Workspace, query_set_id: str) -> None:
    """Remove a query set. It is renamed first, so that no reader meets half of it."""
    folder = workspace.query_set(load(workspace, query_set_id).id)
    try:
        with staging(workspace.queries) as doomed:
            os.replace(folder, doomed / "set")
    except OSError as error:
        raise WorkspaceError(f"The query set {query_set_id!r} could not be removed: {error}.") from error


def iter_lines(workspace: Workspace, query_set_id: str) -> Iterator[dict[str, Any]]:
    """The lines of a set: ``document_id``, ``queries`` and provenance. One line in memory at a time."""
    yield from read_jsonl(workspace.query_set(load(workspace, query_set_id).id) / QUERIES)


def iter_failures(workspace: Workspace, query_set_id: str) -> Iterator[dict[str, Any]]:
    """What went wrong: documents with no or too few queries with their raw answers, or an import's rejected rows."""
    yield from read_jsonl(workspace.query_set(load(workspace, query_set_id).id) / FAILURES)


def iter_queries(workspace: Workspace, query_set_id: str, per_doc: int | None = None) -> Iterator[Query]:
    """Every query, its id made of its document's and its position there (from 1); the first ``per_doc`` of each."""
    for line in iter_lines(workspace, query_set_id):
        for place, text in enumerate(line["queries"][:per_doc], start=1):
            yield Query(f"{line['document_id']}-{place}", text, line["document_id"])


@dataclass(frozen=True)
class Totals:
    """What is in a ``queries.jsonl``."""

    n_documents: int
    n_queries: int
    most_per_document: int
    content_hash: str


def count(path: Path) -> Totals:
    """Read a ``queries.jsonl`` once: its totals, and the hash over ids and queries."""
    digest = hashlib.sha256()
    n_documents = n_queries = most = 0
    for line in read_jsonl(path):
        queries = line["queries"]
        digest.update(json.dumps([line["document_id"], queries], ensure_ascii=True).encode("ascii"))
        n_documents += 1
        n_queries += len(queries)
        most = max(most, len(queries))
    return Totals(n_documents, n_queries, most, digest.hexdigest()[:16])


def known_language(corpus: CorpusManifest) -> str:
    """The corpus' language as a code, empty where it could not be guessed."""
    language = corpus.main_language
    return "" if language == "unknown" else language


def _from_dict(value: Any, path: Path) -> QuerySet:
    """A manifest as it was written; fields that a later version added are passed over."""
    if not isinstance(value, dict):
        raise WorkspaceError(f"{path} is not the manifest of a query set.", hint="The file is damaged.")
    known = {item.name for item in dataclasses.fields(QuerySet)}
    return checked(QuerySet, {name: item for name, item in of_manifest(value).items() if name in known}, path)
