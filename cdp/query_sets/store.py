"""Query sets on disk, ``queries/<id>/manifest.json`` and ``queries.jsonl`` (a line per document in corpus order):
content hash, query ids, duplicates, finding, deletion.

Only this room opens these files; other rooms ask for a ``QuerySet``, its ``DocumentQueries`` or its one hash.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import logging
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base import failures
from cdp.base.errors import ConfigError, InputError, NotFoundError, WorkspaceError
from cdp.base.failures import Failures
from cdp.base.locks import remove
from cdp.base.records import Count, Document, Real, checked, fields, kept, lines, newest_first
from cdp.base.redaction import cleaned
from cdp.base.text import pick
from cdp.base.workspace import (
    Workspace,
    now,
    numbered_jsonl,
    parse_json,
    sha256_file,
    sha256_text,
    write_bytes,
    write_json,
    write_jsonl,
)
from cdp.corpus import CorpusManifest, iter_documents
from cdp.query_sets.origins import written_by


def scan(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(offset, length, record) of each whole line with a ``position``; lines torn by a crash are skipped."""
    if not path.exists():
        return

    offset = 0
    with open(path, "rb") as file:
        for line in file:
            length = len(line)

            if line.endswith(b"\n"):
                try:
                    record = parse_json(line)
                except ValueError:
                    record = None
                at = record.get("position") if isinstance(record, dict) else None
                if type(at) is int and at >= 0:
                    yield offset, length, record

            offset += length


def put_in_order(path: Path, keep: Callable[[int], bool] = lambda position: True) -> None:
    """Rewrite ``path`` with one line per position, ascending: the one that was written last.

    The result replaces the old file by a rename; nothing is written where ``path`` is in order already.
    """
    last: dict[int, int] = {}
    n_lines = n_bytes = 0
    for offset, length, record in scan(path):
        if keep(record["position"]):
            last[record["position"]] = offset
            n_lines, n_bytes = n_lines + 1, n_bytes + length
    ordered = sorted(last)
    if not path.exists() or (n_lines == len(last) and n_bytes == path.stat().st_size and ordered == list(last)):
        return

    def lines() -> Iterator[dict[str, Any]]:
        with open(path, "rb") as source:
            for position in ordered:
                source.seek(last[position])
                yield parse_json(source.readline())

    write_jsonl(path, lines())


_log = logging.getLogger(__name__)
NONE_YET = "There is none yet: write some (queries generate) or import some (queries import)."


class Files:
    """Where the parts of a query set lie below its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = folder / "manifest.json"
        # One line per document.
        self.queries = folder / "queries.jsonl"
        # Documents without queries, or an import's rejected rows.
        self.failures = folder / "failures.jsonl"
        # Of dragon_s_faithful alone: one line per teacher and sentence.
        self.rankings = folder / "rankings.jsonl"
        # Of multi_document alone: which documents are asked about together.
        self.groups = folder / "groups.jsonl"
        # What people decided about single queries, one line per decision, append-only.
        self.review = folder / "review.jsonl"
        # What was measured of the set.
        self.measures = folder / "measures"


def files(workspace: Workspace, query_set_id: str) -> Files:
    """The files of a query set, whether they are there or not."""
    return Files(workspace.query_set(query_set_id))


@dataclass(frozen=True)
class QuerySet:
    """The manifest of a query set.

    ``kind`` is "synthetic", "human", or "unknown" (imported, origin not stated). ``per_doc`` is what was
    asked for per document; of an imported set, the most that a document has. ``n_documents`` counts those that have
    queries, ``n_shared`` the queries that several documents have; ``n_failures`` counts the documents
    that were asked about and have none, and of an imported set the rejected rows.
    ``content_hash`` (16 hex digits over ids, queries and imported hard negatives) is empty until the set is complete;
    ``content_hash(workspace, query_set)`` knows it then too.
    """

    id: str
    name: str
    corpus_id: str
    corpus_hash: str
    kind: str = "unknown"
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
    n_shared: int = 0
    n_failures: int = 0
    job_id: str = ""
    content_hash: str = ""
    licence: str = ""

    @property
    def hard_negatives(self) -> int:
        """How many hard negatives an imported set names; a ranked set has them in its rankings."""
        return int(self.parameters.get("hard_negatives") or 0)

    @property
    def imported(self) -> bool:
        """Return True if the queries were there already."""
        return self.generator == "import"

    @property
    def written_by(self) -> str:
        """Who wrote the queries, in words."""
        return written_by(self.kind, self.generator, self.model)


@dataclass(frozen=True, slots=True)
class DocumentQueries:
    """The queries of one document, in the order in which Q/Doc counts them.

    ``sources`` names the query that each was made from (reasoned forms), ``negatives`` the ids of each one's hard
    negatives, ``teacher`` a cross-encoder's scores (logits) of its document and then of these, ``together`` the ids of
    the other documents that all of them were written for; all are empty where the set says nothing of it.
    """

    document_id: str
    queries: list[str]
    sources: list[str] = field(default_factory=list)
    negatives: list[list[str]] = field(default_factory=list)
    teacher: list[list[float]] = field(default_factory=list)
    together: list[str] = field(default_factory=list)

    def with_ids(self, per_doc: int | None = None) -> list[tuple[str, str]]:
        """(query id, query) of the first ``per_doc``."""
        return [(query_id(self.document_id, n), text) for n, text in enumerate(self.queries[:per_doc], start=1)]


def query_id(document_id: str, position: int) -> str:
    """The id of a document's query, whose position counts from 1."""
    return f"{document_id}-{position}"


def document_of(query_id: str) -> str:
    """The id of the document that a query was written for."""
    return query_id.rsplit("-", 1)[0]


def create(workspace: Workspace, query_set: QuerySet) -> QuerySet:
    """Write the manifest of a new query set; ConfigError where one of that id is there."""
    path = files(workspace, query_set.id).manifest
    if path.exists():
        raise ConfigError(f"There is already a query set {query_set.id!r}.")
    write_json(path, dataclasses.asdict(query_set))
    return query_set


def update(workspace: Workspace, query_set_id: str, **changes: Any) -> QuerySet:
    """Change fields of a manifest atomically; returns the new one."""
    changed = dataclasses.replace(load(workspace, query_set_id), **changes)
    write_json(files(workspace, query_set_id).manifest, dataclasses.asdict(changed))
    return changed


def load(workspace: Workspace, query_set_id: str) -> QuerySet:
    """The manifest of one query set by its exact id; NotFoundError otherwise."""
    path = files(workspace, query_set_id).manifest
    if not path.exists():
        raise NotFoundError("query set", query_set_id, known=[item.id for item in list_query_sets(workspace)])
    return kept(QuerySet, path)


def exists(workspace: Workspace, query_set_id: str) -> bool:
    """Return True if there is a query set of that id."""
    return files(workspace, query_set_id).manifest.exists()


def list_query_sets(workspace: Workspace) -> list[QuerySet]:
    """Every query set, newest first. One whose manifest is damaged is left out, with a warning in the log."""
    return newest_first(QuerySet, workspace.queries.glob("[!.]*/manifest.json"))


def resolve_query_set(workspace: Workspace, name: str) -> QuerySet:
    """The query set with this id, this name, or the only one whose id or name begins so; see ``names.pick``."""
    return pick("query set", name, list_query_sets(workspace), none_yet=NONE_YET)


def delete(workspace: Workspace, query_set_id: str) -> None:
    """Remove a query set. NotFoundError if it is not there."""
    remove(files(workspace, load(workspace, query_set_id).id).folder)


# A line of ``queries.jsonl``: the queries of one document with what is known of each.
_OF_EACH: dict[str, Any] = {
    "sources": list[str], "negatives": list[list[str]], "teacher": list[list[Real]], "together": list[str],
    "notes": list[str], "logprobs": list[Real | None], "problems": dict[str, Count], "usage": dict[str, Count],
}  # fmt: skip
LINE = fields({"document_id": str, "queries": list[str]}, position=Count, **_OF_EACH)
PLACED_LINE = fields({"document_id": str, "queries": list[str], "position": Count}, **_OF_EACH)
# Of one teacher and sentence: ids of the documents that it ranks as positives and as hard negatives.
RANKING = fields({"query": str, "positives": list[str], "negatives": list[str]})


def iter_lines(workspace: Workspace, query_set_id: str) -> Iterator[dict[str, Any]]:
    """The lines of a set as they were written, those of damaged documents left out. One line in memory."""
    path = files(workspace, load(workspace, query_set_id).id).queries
    return lines(PLACED_LINE, path)


def beside_documents(
    workspace: Workspace, query_set_id: str, *, start: int = 0
) -> Iterator[tuple[dict[str, Any], Document]]:
    """Yield each line of a set from position ``start`` on with its document; streams over both, in corpus order."""
    documents = iter_documents(workspace, load(workspace, query_set_id).corpus_id, start=start)
    numbered = enumerate(documents, start)

    for line in iter_lines(workspace, query_set_id):
        for position, document in numbered if line["position"] >= start else ():
            if position == line["position"]:
                yield line, document
                break


def read_queries(
    workspace: Workspace, query_set_id: str, failures: Failures | None = None
) -> Iterator[DocumentQueries]:
    """The queries of each document, streamed; NotFoundError, at once, if there is no such set.

    A line that cannot be used goes to ``failures``; without them it raises WorkspaceError.
    """
    path = files(workspace, load(workspace, query_set_id).id).queries
    return _documents(path, failures)


def _documents(path: Path, failures: Failures | None) -> Iterator[DocumentQueries]:
    for number, record in numbered_jsonl(path):
        try:
            line = checked(LINE, record, path, number)
        except WorkspaceError as error:
            if failures is None:
                raise
            name = record.get("document_id") if isinstance(record, dict) else None
            failures.record(name or f"line {number}", InputError(error.message), str(record))
            continue
        if failures is not None:
            failures.done()
        yield document_queries(line)


def _whole_documents(path: Path) -> Iterator[DocumentQueries]:
    """The documents of a file, damaged lines left out: who reads the queries is told of them."""
    return map(document_queries, lines(LINE, path, []))


def document_queries(line: Mapping[str, Any]) -> DocumentQueries:
    """What a line of the file says of its document's queries."""
    return DocumentQueries(
        line["document_id"], line["queries"], line.get("sources", []), line.get("negatives", []),
        line.get("teacher", []), line.get("together", []),
    )  # fmt: skip


def iter_offsets(workspace: Workspace, query_set_id: str) -> Iterator[tuple[int, DocumentQueries]]:
    """(where its line begins, its queries) of each document: ``read_at`` reads one again without those before it."""
    path = files(workspace, load(workspace, query_set_id).id).queries
    for offset, _, record in scan(path):
        try:
            yield offset, document_queries(checked(LINE, record, path))
        except WorkspaceError as error:
            _log.warning("%s", error)


def read_at(workspace: Workspace, query_set_id: str, offset: int) -> dict[str, Any]:
    """The line that begins at ``offset``, as it was written; WorkspaceError where none does."""
    path = files(workspace, query_set_id).queries
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            line: dict[str, Any] = checked(LINE, parse_json(file.readline()), path)
        return line
    except (OSError, ValueError, WorkspaceError):
        pass
    raise WorkspaceError(f"{path} has changed while it was read.", hint="Reload the page.")


def read_rankings(workspace: Workspace, query_set_id: str) -> Iterator[dict[str, Any]]:
    """Teacher after teacher, sentence after sentence; nothing of a set that no teacher ranked."""
    return lines(RANKING, files(workspace, query_set_id).rankings)


def iter_failures(workspace: Workspace, query_set_id: str) -> Iterator[dict[str, Any]]:
    """What went wrong: documents with no or too few queries with their raw answers, or an import's rejected rows."""
    for line in lines(failures.LINE, files(workspace, load(workspace, query_set_id).id).failures):
        yield cleaned(line)  # files of earlier versions may hold keys


def content_hash(workspace: Workspace, query_set: QuerySet) -> str:
    """The one hash of a query set, by which everything that was made from it names it: 16 hex digits.

    It stands in the manifest once the set is complete; before, it is that of the queries that are there now.
    """
    return query_set.content_hash or count(files(workspace, query_set.id).queries).content_hash


def state(workspace: Workspace, query_set: QuerySet) -> str:
    """What tells whether a set has changed, without reading it: its hash, or its file's size while it grows."""
    path = files(workspace, query_set.id).queries
    return query_set.content_hash or f"{query_set.id} {path.stat().st_size if path.exists() else 0}"


@dataclass(frozen=True)
class Totals:
    """What is in a file of queries. ``n_shared`` are those that several documents have."""

    n_documents: int
    n_queries: int
    n_shared: int
    most_per_document: int
    content_hash: str


def count(path: Path, *, of_lines: bool = False) -> Totals:
    """Read a file of queries once: its totals, and the hash over ids and queries. Damaged lines do not count.

    ``of_lines``: a set with more than these, as hard negatives, is hashed by its whole lines.
    """
    digest = hashlib.sha256()
    n_documents = n_queries = most = 0
    # Hashes, because the texts of millions of queries would not fit in memory.
    seen, shared = set[int](), set[int]()
    for line in _whole_documents(path):
        digest.update(json.dumps([line.document_id, line.queries], ensure_ascii=True).encode("ascii"))
        own = {hash(plain_form(query)) for query in line.queries}
        shared |= own & seen
        seen |= own
        n_documents += 1
        n_queries += len(line.queries)
        most = max(most, len(line.queries))

    content_hash = sha256_file(path) if of_lines else digest.hexdigest()
    return Totals(n_documents, n_queries, len(shared), most, content_hash[:16])


_MARKS = " ?!.,;:…\"'`“”‘’«»„()[]¿¡？！。，、；：؟،"


def plain_form(text: str) -> str:
    """What two queries share that are the same but for case, spacing and the marks around them."""
    return " ".join(text.casefold().split()).strip(_MARKS)


def shared_queries(workspace: Workspace, query_set_id: str) -> dict[str, list[str]]:
    """{plain form: ids of its documents} of the queries that several documents have: each of them is an answer."""
    path = files(workspace, query_set_id).queries
    counts: Counter[int] = Counter()
    for line in _whole_documents(path):
        counts.update({hash(plain_form(text)) for text in line.queries})
    shared: dict[str, list[str]] = {}
    for line in _whole_documents(path):
        for plain in {plain_form(text) for text in line.queries}:
            if plain and counts[hash(plain)] > 1:
                shared.setdefault(plain, []).append(line.document_id)
    return shared


def known_language(corpus: CorpusManifest) -> str:
    """The corpus' language as a code, empty where it could not be guessed."""
    language = corpus.main_language
    return "" if language == "unknown" else language


# Kinds of scores of every query: the rank of its own document, and how well a cross-encoder finds them to fit.
ROUND_TRIP, CROSS_ENCODER = "round-trip", "cross-encoder"


# Values of each query of a set that a model gave: the rank of its own document, a cross-encoder's score.
#
# They lie beside the set in ``measures/<kind>/<key>.npz``. The key is over the set's content, so what was measured of
# another content is not found.


@dataclass(frozen=True)
class QueryScores:
    """One value per query of a set, in its order: ``values`` (n,) by ``by`` (bm25, a retriever, a cross-encoder)."""

    by: str
    values: NDArray[Any]
    created: str


def save_scores(workspace: Workspace, query_set: QuerySet, kind: str, by: str, values: NDArray[Any]) -> None:
    """Keep what a model says of each query of the set as it is now."""
    content = io.BytesIO()
    np.savez_compressed(content, values=values, by=np.array(by), created=np.array(now()))
    write_bytes(_path(workspace, query_set, kind, by), content.getvalue())


def load_scores(workspace: Workspace, query_set: QuerySet, kind: str, by: str) -> QueryScores | None:
    """What this model said of each query of the set as it is now; None where it was not asked."""
    return _read(_path(workspace, query_set, kind, by))


def list_scores(workspace: Workspace, query_set: QuerySet, kind: str) -> list[QueryScores]:
    """What was said of the set as it is now, the newest first; what was said of an earlier content is passed over."""
    there = ((path, _read(path)) for path in (files(workspace, query_set.id).measures / kind).glob("*.npz"))
    valid = [scores for path, scores in there if scores and path == _path(workspace, query_set, kind, scores.by)]
    return sorted(valid, key=lambda scores: (scores.created, scores.by), reverse=True)


def _path(workspace: Workspace, query_set: QuerySet, kind: str, by: str) -> Path:
    key = sha256_text("1", state(workspace, query_set), query_set.corpus_hash, by)[:16]
    return files(workspace, query_set.id).measures / kind / f"{key}.npz"


def _read(path: Path) -> QueryScores | None:
    """Return the scores in a file; None where there is none, or it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as columns:
            return QueryScores(str(columns["by"]), columns["values"], str(columns["created"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
