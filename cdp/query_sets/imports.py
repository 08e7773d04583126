"""Queries that exist already, imported as a query set: columns, a document per row or pairs, negatives, rejected rows.

Rows are streamed. A row that cannot be used is rejected with its line and reason, counted, and kept in
``failures.jsonl``; nothing is dropped silently.
"""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from cdp.base.errors import SHOWN_PROBLEMS, InputError, WorkspaceError, nearest
from cdp.base.locks import staging
from cdp.base.records import Document
from cdp.base.settings import Config, option
from cdp.base.workspace import Workspace, sha256_file, slug, write_json, write_jsonl
from cdp.corpus import iter_documents, load_documents, load_manifest
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
from cdp.corpus.options import AUTO, ReadOptions, check_encoding
from cdp.corpus.readers import BadRow, Row, RowFormat, format_of, parquet
from cdp.corpus.sources import Budget, Source, existing, shown_name
from cdp.query_sets import store
from cdp.query_sets.origins import KIND_OF, ORIGINS, UNKNOWN, check_origin, described
from cdp.query_sets.shapes import (
    LOG_PROBS,
    NamedDocument,
    RowDocuments,
    holds_passages,
    log_probability,
    passages_of,
    unfolded,
)
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
                positions = {document_id: at for at, document_id in enumerate(ids)}
                taken = _Taken(positions, lambda: iter_documents(workspace, corpus.id), log)
                for row in rows:
                    taken.add(row)

            if not taken.queries:
                raise taken.nothing(corpus.id, source if isinstance(source, Path) else None)

            write_jsonl(files.queries, taken.lines(ids))
            totals = store.count(files.queries)
            parameters: dict[str, Any] = {**stated.pop("parameters"), **taken.facts()}
            # The hash of a set is over ids and queries; with more than these, over the whole lines.
            more = taken.facts() or taken.any(lambda query: query.logprob is not None)
            content_hash = sha256_file(files.queries)[:16] if more else totals.content_hash
            notes += taken.notes()
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


@dataclass(slots=True)
class _Query:
    """What is known of a query: its hard negatives by id, with a teacher's scores of them and of its own document."""

    negatives: dict[str, float | None] = field(default_factory=dict)
    score: float | None = None
    logprob: float | None = None

    @property
    def teacher(self) -> list[float | None]:
        """The scores, own document first; empty unless all are known."""
        scores = [self.score, *self.negatives.values()]
        return [] if None in scores or not self.negatives else scores


class _Taken:
    """The usable queries of an import; rows and queries that cannot be used are written to ``log``."""

    def __init__(self, positions: Mapping[str, int], documents: Callable[[], Iterable[Document]], log: TextIO) -> None:
        self.positions, self.documents, self.log = positions, documents, log
        # By the document's position in the corpus.
        self.queries: dict[int, dict[str, _Query]] = {}
        self.n_unknown = self.n_rejected = self.n_not_relevant = self.n_other_text = 0
        # The first 20, in words.
        self.first_rejected: list[str] = []

    def add(self, row: QueryRow) -> None:
        """Take the usable queries of a row; reject the others, and negatives that are no documents."""
        if row.reason:
            return self._reject(row, row.reason)

        if not row.relevant:
            self.n_not_relevant += 1
            return None

        document_id = self.find(row.document)
        if document_id is None:
            self.n_unknown += 1
            return self._reject(row, f"there is no document {row.document.shown}")

        of_document = self.queries.get(self.positions[document_id], {})
        logprobs = row.logprobs or (None,) * len(row.queries)

        per_query = zip(row.queries, logprobs, row.negatives or itertools.repeat(()), strict=False)
        for query, logprob, passages in per_query:
            text = " ".join(query.split())
            if not text or storable(text)[1]:
                self._reject(row, UNSTORABLE if text else "the query is empty")
                continue

            known = of_document.get(text)
            found = of_document.setdefault(text, _Query(score=row.document.score, logprob=logprob))
            before = len(found.negatives)

            for passage in passages:
                name = self.find(passage)
                if name is None:
                    self._reject(row, f"there is no document {passage.shown}, named as a negative")
                else:
                    found.negatives.setdefault(name, passage.score)

            if known is not None and len(found.negatives) == before:
                self._reject(row, "a query is repeated")

        if of_document:
            self.queries[self.positions[document_id]] = of_document

        return None

    def find(self, passage: NamedDocument) -> str | None:
        """Return the id of the document that has this text, or else this id; None where there is none."""
        named = passage.id if passage.id in self.positions else None
        if not passage.text:
            return named
        by_text, text_of = self._texts
        text = hash(" ".join(passage.text.split()))
        if named is not None and text in text_of[self.positions[named]]:
            return named
        # An id of one collection may be that of another document in this one: the text says which is meant.
        self.n_other_text += named is not None and text not in by_text
        return by_text.get(text, named)

    @cached_property
    def _texts(self) -> tuple[dict[int, str], list[tuple[int, ...]]]:
        """The first document with each text, its title before it or not, and the texts of each; by their hashes."""
        by_text: dict[int, str] = {}
        text_of = []
        for document in self.documents():
            texts = tuple(hash(" ".join(text.split())) for text in (document.content, document.text))
            text_of.append(texts)
            for text in texts:
                by_text.setdefault(text, document.id)
        return by_text, text_of

    def any(self, holds: Callable[[_Query], Any]) -> bool:
        """Return True if it holds for any query."""
        return any(holds(query) for queries in self.queries.values() for query in queries.values())

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says beside the queries: how many negatives there are, and that they have scores."""
        n_negatives = sum(len(query.negatives) for queries in self.queries.values() for query in queries.values())
        scored = self.any(lambda query: query.teacher)
        return {
            **({"hard_negatives": n_negatives} if n_negatives else {}),
            **({"teacher": "imported"} if scored else {}),
        }

    def notes(self) -> list[str]:
        """Say how many documents were found by an id alone."""
        n = self.n_other_text
        return [f"{n:,} documents were found by their ids; their texts here are others."] if n else []

    def lines(self, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield one line per document, in the order of the corpus."""
        for at, queries in sorted(self.queries.items()):
            known = list(queries.values())
            lists: dict[str, list[Any]] = {
                "negatives": [list(query.negatives) for query in known],
                "teacher": [query.teacher for query in known],
                "logprobs": [query.logprob for query in known],
            }
            said = {name: values for name, values in lists.items() if any(value not in ([], None) for value in values)}
            yield {"document_id": ids[at], "position": at, "queries": list(queries), **said}

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
        record = {"line": row.line, "document_id": row.document.id, "reason": reason}
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
QUERY_FIELDS = (*GUESSES["question"], "anchor", "text")
NEGATIVES = "negatives"
SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab", ".parquet")
# Rows from which the columns of a file are taken.
LOOKED_AT = 200


NOWHERE = NamedDocument()


@dataclass(frozen=True)
class QueryRow:
    """The queries that one line of a source has for one document, or the reason why it has none.

    ``negatives`` holds, for each query, its hard negatives; it is empty where the line names none, as ``logprobs`` is.
    A document that is not ``relevant`` was judged to be no answer.
    """

    line: int
    document: NamedDocument = NOWHERE
    queries: tuple[str, ...] = ()
    reason: str = ""
    negatives: tuple[Sequence[NamedDocument], ...] = ()
    relevant: bool = True
    logprobs: tuple[float | None, ...] = ()


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
            if len(self._known) > LOOKED_AT:
                self._known = {}
            document, query = self.options.document_field, self.options.query_field
            self._known[names] = (
                self._named(document, DOCUMENT_FIELDS, query, names),
                self._named(query, QUERY_FIELDS, document, names),
            )
        return self._known[names]

    def _named(self, field: str | None, guesses: Sequence[str], other: str | None, names: Sequence[str]) -> list[str]:
        """The field that was chosen, in a table in any case; else the guesses that are there, less the other field."""
        if not field:
            return [name for name in columns_named(names, guesses) if name != other]
        if field in names or not self.table:
            return [field]
        return columns_named(names, (field.lower(),)) or [field]

    def notes(self) -> list[str]:
        """How grades were read, and the columns that were not."""
        document, query = self.of(dict.fromkeys(self.names))
        used = {*document[:1], *query[:1], *self.grades.columns, NEGATIVES, *LOG_PROBS}
        unused = [name for name in self.names if name not in used and not holds_passages(name)]
        return [note for note in (self.grades.sentence(), not_taken(unused)) if note]


def file_rows(source: Source, options: ImportOptions, notes: list[str] | None = None) -> Iterator[QueryRow]:
    """The rows of a file, streamed; at the end what is said of them goes to ``notes``."""
    given = {"id_field": options.document_field, "text_field": options.query_field, "encoding": options.encoding}
    read = ReadOptions.from_dict(given)
    reader = format_of(source, read)
    assert isinstance(reader, RowFormat)
    # Parquet's reader of documents takes the columns of documents alone.
    whole = (Row(number, values) for number, values in enumerate(parquet.records(source), start=1))
    given_rows = whole if reader.name == parquet.NAME else reader.rows(source, read)

    rows = itertools.chain.from_iterable(map(unfolded, given_rows))
    head = list(itertools.islice(rows, LOOKED_AT))
    columns = _Columns([row.values for row in head if isinstance(row, Row)], options, reader.name != "jsonl")
    for row in itertools.chain(head, rows):
        if isinstance(row, BadRow):
            yield QueryRow(row.line or 0, reason=f"{row.kind} ({row.reason})")
        else:
            yield from _rows(row.line or 0, row.values, columns)

    if notes is not None:
        notes += columns.notes()


def _rows(number: int, record: Mapping[str, Any], columns: _Columns) -> Iterator[QueryRow]:
    """Yield what a line says: a row, or one for each document that it holds as an answer."""
    try:
        held = None if columns.options.document_field else passages_of(record)
    except ValueError as error:
        yield QueryRow(number, reason=str(error))
        return
    documents = held.positives if held else [_document(record, columns)]
    for document in documents:
        if isinstance(document, str):
            yield QueryRow(number, reason=document)
        else:
            yield _row(number, document, held, record, columns)


def _document(record: Mapping[str, Any], columns: _Columns) -> NamedDocument | str:
    """Return the document that a line names by its id, or the reason why it names none."""
    fields, _ = columns.of(record)
    document_id = next((record[name] for name in fields if record.get(name) not in (None, "")), None)
    if document_id is None:
        return f"there is no document id ({_looked_for(columns.options.document_field, DOCUMENT_FIELDS, record)})"
    if isinstance(document_id, str):
        return NamedDocument(document_id.strip() if columns.table else document_id)
    try:
        return NamedDocument(checked_id(document_id, ""))
    except RefusedValueError:
        return "the document id is neither text nor a number"


def _row(
    number: int, document: NamedDocument, held: RowDocuments | None, record: Mapping[str, Any], columns: _Columns
) -> QueryRow:
    _, query_fields = columns.of(record)
    value = next((record[name] for name in query_fields if name in record), None)

    queries = [value] if isinstance(value, str) else value
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        looked = _looked_for(columns.options.query_field, QUERY_FIELDS, record)
        return QueryRow(number, document, reason=f"there is no query, a text or a list of texts ({looked})")

    grade = 1 if held else columns.grades.of(record)
    if grade is None:
        return QueryRow(number, document, reason=f"no grade in {' or '.join(columns.grades.columns)}: {A_GRADE}")

    try:
        named = (held.negatives,) * len(queries) if held else _negatives(record.get(NEGATIVES) or [], len(queries))
    except ValueError as error:
        return QueryRow(number, document, reason=str(error))

    logprobs = log_probability(record, len(queries))
    return QueryRow(number, document, tuple(queries), negatives=named, relevant=grade > 0, logprobs=logprobs)


def _looked_for(chosen: str | None, fields: Sequence[str], record: Mapping[str, Any]) -> str:
    """``one of query, text …``, or of a field that the user chose ``field qery; did you mean query?``."""
    if chosen is None:
        return f"one of {', '.join(fields[:8])} …"
    field_names = [name for name in itertools.islice(record, LOOKED_THROUGH) if len(name) <= LONGEST_SHOWN]
    near = "" if chosen in record else nearest(chosen, field_names)
    return f"field {chosen}{f'; did you mean {near}?' if near else ''}"


def _negatives(value: Any, n_queries: int) -> tuple[tuple[NamedDocument, ...], ...]:
    """The hard negatives of each query: one list of document ids for all of them, or one list per query."""
    if not isinstance(value, list):
        raise ValueError(f'"{NEGATIVES}" is no list of document ids')
    if not any(isinstance(item, list) for item in value):
        return (_ids(value),) * n_queries if value else ()
    if len(value) != n_queries or not all(isinstance(item, list) for item in value):
        raise ValueError(f'"{NEGATIVES}" has {len(value)} lists for {n_queries} queries')
    return tuple(map(_ids, value))


def _ids(value: list[Any]) -> tuple[NamedDocument, ...]:
    if any(isinstance(item, (dict, list)) for item in value):
        raise ValueError(f'"{NEGATIVES}" is no list of document ids')
    return tuple(NamedDocument(str(item)) for item in value)


def read_pairs(pairs: Iterable[tuple[str, str | Iterable[str]]]) -> Iterator[QueryRow]:
    """Rows from (document id, query or queries) pairs; their number counts as the line."""
    for number, (document_id, queries) in enumerate(pairs, start=1):
        yield QueryRow(number, NamedDocument(document_id), (queries,) if isinstance(queries, str) else tuple(queries))


def read_path(path: Path, options: ImportOptions, notes: list[str] | None = None) -> Iterator[QueryRow]:
    """The rows of a file, streamed. InputError where it cannot be read at all."""
    source = Source.of_file(existing(path), path.name, Budget.of(path))
    if path.is_dir() or source.suffix not in SUFFIXES:
        raise InputError(
            "Queries are read from .jsonl, .json, .csv and .tsv files (also .gz), and from .parquet.",
            hint="A folder in BEIR layout is added with its documents: projects add PATH.",
            file=path,
        )
    return file_rows(source, options, notes)
