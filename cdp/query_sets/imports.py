"""Queries that exist already, imported as a query set: columns, a document per row or pairs, negatives, rejected rows.

Rows are streamed. A row that cannot be used is rejected with its line and reason, counted, and kept in
``failures.jsonl``; nothing is dropped silently.
"""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from cdp.base.errors import SHOWN_PROBLEMS, InputError, WorkspaceError, nearest
from cdp.base.locks import staging
from cdp.base.settings import Config, option
from cdp.base.workspace import Workspace, sha256_file, slug, write_json, write_jsonl
from cdp.corpus import load_documents, load_manifest
from cdp.corpus.checks import (
    GUESSES,
    LONGEST_SHOWN,
    LOOKED_THROUGH,
    RefusedValueError,
    checked_id,
    columns_named,
    not_taken,
    storable,
)
from cdp.corpus.grades import A_GRADE, Grades, grade_columns
from cdp.corpus.options import AUTO, KIND_OF, ORIGINS, UNKNOWN, ReadOptions, check_encoding, check_origin, described
from cdp.corpus.readers import BadRow, Row, RowFormat, format_of
from cdp.corpus.sources import Budget, Source, existing, shown_name
from cdp.query_sets import store
from cdp.query_sets.store import Files, QuerySet, known_language

UNSTORABLE = "the query holds NUL or half of a surrogate pair, which cannot be stored"


@dataclass(frozen=True)
class ImportedQueries:
    """The new set, the number of rejected rows and queries, and the first 20 with line and reason; how the file was
    read: the values of grades, columns that were not taken."""

    query_set: QuerySet
    n_rejected: int
    rejected: tuple[str, ...]
    notes: tuple[str, ...] = ()


def import_queries(
    source: Path | Iterable[tuple[str, str | Iterable[str]]],
    workspace: Workspace,
    corpus_id: str,
    name: str = "",
    *,
    kind: str = "",
    method: str = "imported",
    language: str = "",
    options: ImportOptions | None = None,
) -> ImportedQueries:
    """Store the queries of ``source`` (a file, or (document id, query or queries) pairs) as a set.

    ``options`` say how a file is read and who wrote the queries; ``kind``, where it is given, is what the set is. The
    same queries under the same name are stored once; a stated origin replaces an earlier one.
    InputError where nothing could be used.
    """
    options = options or ImportOptions()
    stated = described(options.origin, options.model, options.prompt, options.licence, {})
    corpus, name = load_manifest(workspace, corpus_id), shown_name(name)
    ids = load_documents(workspace, corpus.id, columns=["id"]).column("id").to_pylist()
    notes: list[str] = []
    if isinstance(source, Path):
        rows, label = read_path(source, options, notes), name or shown_name(source.name.split(".")[0])
    else:
        rows, label = read_pairs(source), name or "imported"
    try:
        with staging(workspace.queries) as folder:
            files = Files(folder / "set")
            files.folder.mkdir()
            with open(files.failures, "w", encoding="utf-8") as log:
                taken = _Taken({document_id: at for at, document_id in enumerate(ids)}, log)
                for row in rows:
                    taken.add(row)
            if not taken.queries:
                raise taken.nothing(corpus.id, source if isinstance(source, Path) else None)
            write_jsonl(files.queries, taken.lines(ids))
            n_negatives = sum(len(names) for queries in taken.queries.values() for names in queries.values())
            totals = store.count(files.queries)
            # The hash of a set is over ids and queries; with negatives, over the whole lines.
            content_hash = sha256_file(files.queries)[:16] if n_negatives else totals.content_hash
            parameters: dict[str, Any] = {**stated.pop("parameters")}
            if n_negatives:
                parameters["hard_negatives"] = n_negatives
            query_set = QuerySet(
                **{**stated, "kind": kind or stated["kind"]},
                id=f"{slug(label)}-{content_hash[:8]}",
                name=label,
                corpus_id=corpus.id,
                corpus_hash=corpus.content_hash,
                method=method,
                generator="import",
                per_doc=totals.most_per_document,
                language=language or known_language(corpus),
                complete=True,
                n_documents=totals.n_documents,
                n_queries=totals.n_queries,
                n_shared=totals.n_shared,
                n_failures=taken.n_rejected,
                content_hash=content_hash,
                parameters=parameters,
            )
            stored = install(workspace, query_set, files.folder)
    except OSError as error:
        raise WorkspaceError(
            f"The queries could not be stored in {workspace.queries}: {error.strerror or error}.",
            hint="Is the disk full or read-only?",
        ) from error
    return ImportedQueries(stored, taken.n_rejected, tuple(taken.first_rejected), tuple(notes))


def install(workspace: Workspace, query_set: QuerySet, set_folder: Path) -> QuerySet:
    """Give the finished set its place, manifest and all; the same queries under the same name are there already."""
    write_json(Files(set_folder).manifest, dataclasses.asdict(query_set))
    try:
        set_folder.rename(workspace.query_set(query_set.id))
        return query_set
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    present = store.load(workspace, query_set.id)
    if present.corpus_id == query_set.corpus_id:
        return _with_origin(workspace, present, query_set)
    raise InputError(
        f"A query set {query_set.id!r} of another corpus has the same queries.", hint="Choose another name."
    )


def _with_origin(workspace: Workspace, present: QuerySet, stated: QuerySet) -> QuerySet:
    """The set that was there, with what its second import says of its origin and licence, if it says anything."""
    if stated.kind == KIND_OF[UNKNOWN] and not stated.licence:
        return present
    fields = ("kind", "model", "prompt_hash", "licence", "parameters")
    changes = {name: getattr(stated, name) for name in fields if getattr(stated, name) != getattr(present, name)}
    return store.update(workspace, present.id, **changes) if changes and present.imported else present


class _Taken:
    """The usable queries of an import; rows and queries that cannot be used are written to ``log``."""

    def __init__(self, positions: Mapping[str, int], log: TextIO) -> None:
        self.positions, self.log = positions, log
        # By the document's position in the corpus: each query with its hard negatives.
        self.queries: dict[int, dict[str, dict[str, None]]] = {}
        self.n_unknown = self.n_rejected = self.n_not_relevant = 0
        # The first 20, in words.
        self.first_rejected: list[str] = []

    def add(self, row: QueryRow) -> None:
        """Take the usable queries of a row; reject the others, and negatives that are no documents."""
        if row.reason:
            return self._reject(row, row.reason)
        if not row.relevant:
            self.n_not_relevant += 1
            return None
        if row.document_id not in self.positions:
            self.n_unknown += 1
            return self._reject(row, f"there is no document {row.document_id!r}")
        of_document = self.queries.get(self.positions[row.document_id], {})
        for query, names in zip(row.queries, row.negatives or itertools.repeat(()), strict=False):
            text = " ".join(query.split())
            if not text or storable(text)[1]:
                self._reject(row, UNSTORABLE if text else "the query is empty")
                continue
            if text in of_document:
                self._reject(row, "a query is repeated")
            negatives = of_document.setdefault(text, {})
            for name in names:
                if name in self.positions:
                    negatives[name] = None
                else:
                    self._reject(row, f"there is no document {name!r}, named as a negative")
        if of_document:
            self.queries[self.positions[row.document_id]] = of_document

    def lines(self, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield one line per document, in the order of the corpus."""
        for at, queries in sorted(self.queries.items()):
            negatives = {"negatives": list(map(list, queries.values()))} if any(queries.values()) else {}
            yield {"document_id": ids[at], "position": at, "queries": list(queries), **negatives}

    def nothing(self, corpus_id: str, source: Path | None) -> InputError:
        """Return the error of an import without a single query."""
        judged = f", {self.n_not_relevant} judged not relevant" if self.n_not_relevant else ""
        foreign = 0 < self.n_unknown == self.n_rejected
        return InputError(
            f"None of the {self.n_rejected} rows belongs to a document of {corpus_id}."
            if foreign
            else f"There is no query to import ({self.n_rejected} rows rejected{judged}).",
            hint=" ".join(self.first_rejected[:3]) or "The file is empty.",
            file=source,
        )

    def _reject(self, row: QueryRow, reason: str) -> None:
        self.n_rejected += 1
        if len(self.first_rejected) < SHOWN_PROBLEMS:
            self.first_rejected.append(f"Line {row.line}: {reason}.")
        record = {"line": row.line, "document_id": row.document_id, "reason": reason}
        self.log.write(json.dumps(record) + "\n")


class ImportOptions(Config):
    """Choices of the user about one import of queries. The defaults read what common tools export."""

    query_field: str | None = option(
        None,
        "The field or column with the query (in JSON also a list of queries); auto tries queries, query, questions, "
        "question, text. A query needs no id: the first one of document d becomes d-1.",
    )  # fmt: skip
    document_field: str | None = option(
        None,
        "The field or column with the id of the document that a query is for; auto tries document_id, doc_id, docid, "
        "corpus-id, corpus_id, _id, id, pid.",
    )  # fmt: skip
    grade_field: str | None = option(
        None,
        "The field or column with the grade of the judgment: numbers, yes/no, true/false, relevant/not relevant. Rows "
        "of 0, below, or no are no pairs. auto tries grade, score, relevance, label, judgment, rating ….",
    )  # fmt: skip
    encoding: str = option(
        AUTO, "The text encoding: auto takes UTF-8, else what the file seems to be in. Or utf-8, utf-16, cp1252 …",
        reason="Nearly all data sets are UTF-8; of others the encoding shows.",
    )  # fmt: skip
    origin: str = option(
        UNKNOWN, "Who wrote the queries: human, llm (a language model), or unknown.",
        reason="A file does not say; nothing is claimed until the origin is known.", choices=ORIGINS,
    )  # fmt: skip
    model: str = option("", "For llm: the model that wrote them, as far as known. Nothing is loaded.")
    prompt: str = option("", "For llm: the prompt, its name, or where it is described.")
    licence: str = option("", "The licence of the queries, such as CC BY-NC-SA 4.0.")

    def check(self) -> None:
        check_encoding(self.encoding)
        check_origin(self.origin, self.model, self.prompt)


# Also where a query may stand, and a document's id.
DOCUMENT_FIELDS = (*GUESSES["document"], "_id", "id", "pid")
QUERY_FIELDS = (*GUESSES["question"], "text")
NEGATIVES = "negatives"
# Rows from which the columns of a file are taken.
LOOKED_AT = 200


@dataclass(frozen=True)
class QueryRow:
    """The queries that one line of a source has for one document, or the reason why it has none.

    ``negatives`` holds, for each query, the ids of its hard negatives; it is empty where the line names none.
    A document that is not ``relevant`` was judged to be no answer.
    """

    line: int
    document_id: str = ""
    queries: tuple[str, ...] = ()
    reason: str = ""
    negatives: tuple[tuple[str, ...], ...] = ()
    relevant: bool = True


class _Columns:
    """Which fields of a file's rows hold what, by the names in each row: JSON objects need not have the same."""

    def __init__(self, head: Sequence[Mapping[str, Any]], options: ImportOptions, table: bool) -> None:
        self.options, self.table = options, table
        self.grades = Grades(grade_columns(head, options.grade_field, (options.query_field, options.document_field)))
        self.names = list(dict.fromkeys(name for row in head for name in row))
        self._known: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}

    def of(self, row: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """The fields of a row that may hold the document's id, and those that may hold the query."""
        names = tuple(row)
        if names not in self._known:
            self._known = {} if len(self._known) > LOOKED_AT else self._known
            chosen = (self.options.document_field, self.options.query_field)
            document, query = (
                self._chosen(field, names)
                if field
                else [name for name in columns_named(names, guesses) if name not in chosen]
                for field, guesses in zip(chosen, (DOCUMENT_FIELDS, QUERY_FIELDS), strict=True)
            )
            self._known[names] = document, query
        return self._known[names]

    def _chosen(self, field: str, names: Sequence[str]) -> list[str]:
        """The field itself; in a table in any case."""
        return [field] if field in names or not self.table else columns_named(names, (field.lower(),)) or [field]

    def notes(self) -> list[str]:
        """How grades were read, and the columns that were not."""
        document, query = self.of(dict.fromkeys(self.names))
        used = {*document[:1], *query[:1], *self.grades.columns, NEGATIVES}
        unused = [name for name in self.names if name not in used]
        return [note for note in (self.grades.sentence(), not_taken(unused)) if note]


def file_rows(source: Source, options: ImportOptions, notes: list[str] | None = None) -> Iterator[QueryRow]:
    """The rows of JSON Lines, a JSON array, CSV or TSV, streamed; at the end what is said of them goes to ``notes``."""
    given = {"id_field": options.document_field, "text_field": options.query_field, "encoding": options.encoding}
    read = ReadOptions.from_dict(given)
    reader = format_of(source, read)
    assert isinstance(reader, RowFormat)
    rows = reader.rows(source, read)
    head = list(itertools.islice(rows, LOOKED_AT))
    columns = _Columns([row.values for row in head if isinstance(row, Row)], options, reader.name != "jsonl")
    for row in itertools.chain(head, rows):
        if isinstance(row, BadRow):
            yield QueryRow(row.line or 0, reason=f"{row.kind} ({row.reason})")
        else:
            yield _row(row.line or 0, row.values, columns)
    if notes is not None:
        notes += columns.notes()


def _row(number: int, record: Mapping[str, Any], columns: _Columns) -> QueryRow:
    document_fields, query_fields = columns.of(record)
    document_id = next((record[name] for name in document_fields if record.get(name) not in (None, "")), None)
    if document_id is None:
        looked = _looked_for(columns.options.document_field, DOCUMENT_FIELDS, record)
        return QueryRow(number, reason=f"there is no document id ({looked})")
    if isinstance(document_id, str):
        document = document_id.strip() if columns.table else document_id
    else:
        try:
            document = checked_id(document_id, "")
        except RefusedValueError:
            return QueryRow(number, reason="the document id is neither text nor a number")
    value = next((record[name] for name in query_fields if name in record), None)
    queries = [value] if isinstance(value, str) else value
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        looked = _looked_for(columns.options.query_field, QUERY_FIELDS, record)
        return QueryRow(number, document, reason=f"there is no query, a text or a list of texts ({looked})")
    grade = columns.grades.of(record)
    if grade is None:
        return QueryRow(number, document, reason=f"no grade in {' or '.join(columns.grades.columns)}: {A_GRADE}")
    try:
        negatives = _negatives(record.get(NEGATIVES) or [], len(queries))
    except ValueError as error:
        return QueryRow(number, document, reason=str(error))
    return QueryRow(number, document, tuple(queries), negatives=negatives, relevant=grade > 0)


def _looked_for(chosen: str | None, fields: Sequence[str], record: Mapping[str, Any]) -> str:
    """``one of query, text …``, or of a field that the user chose ``field qery; did you mean query?``."""
    if chosen is None:
        return f"one of {', '.join(fields[:8])} …"
    field_names = [name for name in itertools.islice(record, LOOKED_THROUGH) if len(name) <= LONGEST_SHOWN]
    near = "" if chosen in record else nearest(chosen, field_names)
    return f"field {chosen}{f'; did you mean {near}?' if near else ''}"


def _negatives(value: Any, n_queries: int) -> tuple[tuple[str, ...], ...]:
    """The hard negatives of each query: one list of document ids for all of them, or one list per query."""
    if not isinstance(value, list):
        raise ValueError(f'"{NEGATIVES}" is no list of document ids')
    if not any(isinstance(item, list) for item in value):
        return (_ids(value),) * n_queries if value else ()
    if len(value) != n_queries or not all(isinstance(item, list) for item in value):
        raise ValueError(f'"{NEGATIVES}" has {len(value)} lists for {n_queries} queries')
    return tuple(map(_ids, value))


def _ids(value: list[Any]) -> tuple[str, ...]:
    if any(isinstance(item, (dict, list)) for item in value):
        raise ValueError(f'"{NEGATIVES}" is no list of document ids')
    return tuple(map(str, value))


def read_pairs(pairs: Iterable[tuple[str, str | Iterable[str]]]) -> Iterator[QueryRow]:
    """Rows from (document id, query or queries) pairs; their number counts as the line."""
    for number, (document_id, queries) in enumerate(pairs, start=1):
        yield QueryRow(number, document_id, (queries,) if isinstance(queries, str) else tuple(queries))


def read_path(path: Path, options: ImportOptions, notes: list[str] | None = None) -> Iterator[QueryRow]:
    """The rows of a file, streamed. InputError where it cannot be read at all."""
    source = Source.of_file(existing(path), path.name, Budget.of(path))
    if path.is_dir() or source.suffix not in (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab"):
        raise InputError(
            "Queries are read from .jsonl, .json, .csv and .tsv files (also .gz).",
            hint="A folder in BEIR layout is added with its documents: projects add PATH.",
            file=path,
        )
    return file_rows(source, options, notes)
