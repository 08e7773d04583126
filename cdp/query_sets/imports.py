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

from cdp.base.errors import SHOWN_PROBLEMS, ConfigError, InputError, WorkspaceError, nearest, some, visible
from cdp.base.locks import staging
from cdp.base.records import Document
from cdp.base.settings import Config, altered, option
from cdp.base.text import counted
from cdp.base.workspace import Workspace, slug, write_json, write_jsonl
from cdp.corpus import iter_documents, load_manifest, open_corpus
from cdp.corpus.checks import (
    GUESSES,
    LONGEST_SHOWN,
    LOOKED_THROUGH,
    beginning,
    cell_of,
    column_named,
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
    ANSWER,
    LOG_PROBS,
    SCORES,
    TEXT_FIELDS,
    NamedDocument,
    RowDocuments,
    first_value,
    holds_passages,
    holds_scores,
    id_or_text,
    log_probability,
    passages_of,
    unfolded,
)
from cdp.query_sets.store import Files, QuerySet, known_language

OWN_TEXT = "the query is the text of its document (choose the field of the queries)"
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
    finder = finder_of(workspace, corpus.id)
    notes: list[str] = []

    file = None
    if isinstance(source, Path):
        file = source
        rows, label = read_path(source, options, notes), name or shown_name(source.name.split(".")[0])
    else:
        rows, label = read_pairs(source), name or "imported"

    try:
        with staging(workspace.queries) as folder:
            files = Files(folder / "set")
            files.folder.mkdir()

            with open(files.failures, "w", encoding="utf-8") as log:
                taken = _Taken(finder, log)
                for row in rows:
                    taken.add(row)

            if not taken.queries:
                raise taken.nothing(corpus.id, file)

            write_jsonl(files.queries, taken.lines(list(finder.positions)))
            totals = store.count(files.queries, of_lines=bool(taken.facts()) or taken.has_logprobs)
            parameters: dict[str, Any] = {**stated.pop("parameters"), **taken.facts()}

            notes += taken.notes()
            query_set = QuerySet(
                **{**stated, "kind": kind or stated["kind"]},
                id=f"{slug(label)}-{totals.content_hash[:8]}",
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
                content_hash=totals.content_hash,
                parameters=parameters,
            )
            stored = install(workspace, query_set, files.folder)
    except OSError as error:
        raise WorkspaceError.refused(workspace.queries, "written to", error) from error

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
    if not present.imported:
        return present

    changes: dict[str, Any] = {}
    for name in ("kind", "model", "prompt_hash", "licence", "parameters"):
        if getattr(stated, name) != getattr(present, name):
            changes[name] = getattr(stated, name)

    if not changes:
        return present
    return store.update(workspace, present.id, **changes)


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


class DocumentFinder:
    """Finds the documents of a corpus that files name by id or text. ``positions`` are those of the ids in it."""

    def __init__(self, positions: Mapping[str, int], documents: Callable[[], Iterable[Document]]) -> None:
        self.positions, self.documents, self.n_other_text = positions, documents, 0

    def find(self, passage: NamedDocument) -> str | None:
        """Return the id of the document that has this text, or else this id; None where there is none."""
        named = passage.id if passage.id in self.positions else None
        if not passage.text or (named is not None and passage.id == passage.text):
            return named

        by_text, text_of = self._texts
        texts = [_text_hash(f"{passage.title} {passage.text}"), _text_hash(passage.text)]
        if named is not None and set(texts) & set(text_of[self.positions[named]]):
            return named

        # An id of one collection may be that of another document in this one: the text says which is meant.
        found = next((by_text[text] for text in texts if text in by_text), None)
        self.n_other_text += named is not None and found is None
        return found or named

    def is_text(self, document_id: str, text: str) -> bool:
        """Return True if this is the text of the document, its title before it or not."""
        return _text_hash(text) in self._texts[1][self.positions[document_id]]

    @property
    def note(self) -> str:
        """How many documents were found by an id alone; empty for none."""
        n = self.n_other_text
        return f"{n:,} documents were found by their ids; their texts here are others." if n else ""

    @cached_property
    def _texts(self) -> tuple[dict[int, str], list[tuple[int, int]]]:
        """The first document with each text, its title before it or not, and the texts of each; by their hashes."""
        by_text: dict[int, str] = {}
        text_of = []
        for document in self.documents():
            texts = _text_hash(document.content), _text_hash(document.text)
            text_of.append(texts)
            for text in texts:
                by_text.setdefault(text, document.id)

        return by_text, text_of


def finder_of(workspace: Workspace, corpus_id: str) -> DocumentFinder:
    """Return the finder of a corpus's documents."""
    ids = open_corpus(workspace, corpus_id).table(columns=["id"]).column("id").to_pylist()
    return DocumentFinder({id: at for at, id in enumerate(ids)}, lambda: iter_documents(workspace, corpus_id))


class _Taken:
    """The usable queries of an import; rows and queries that cannot be used are written to ``log``."""

    def __init__(self, finder: DocumentFinder, log: TextIO) -> None:
        self.finder, self.positions, self.log = finder, finder.positions, log
        # By the document's position in the corpus.
        self.queries: dict[int, dict[str, _Query]] = {}
        self.n_unknown = self.n_swapped = self.n_rejected = self.n_not_relevant = self.n_of_lines = 0
        # The first 20, in words.
        self.first_rejected: list[str] = []

    def add(self, row: QueryRow) -> None:
        """Take the usable queries of a row; reject the others, and negatives that are no documents."""
        if row.reason:
            return self._reject(row, row.reason)

        if row.grade <= 0:
            self.n_not_relevant += 1
            return None

        document_id = self.finder.find(row.document)
        if document_id is None:
            self.n_unknown += 1
            if row.document.text and self.n_unknown <= SHOWN_PROBLEMS:
                of_documents = (NamedDocument(text=query) for query in row.queries)
                self.n_swapped += any(self.finder.find(query) for query in of_documents)
            return self._reject(row, f"there is no document {row.document.shown}")

        of_document = self.queries.get(self.positions[document_id], {})
        logprobs = row.logprobs or (None,) * len(row.queries)

        per_query = zip(row.queries, logprobs, row.negatives or itertools.repeat(()), strict=False)
        for query, logprob, passages in per_query:
            text = " ".join(query.split())
            if not text:
                self._reject(row, "the query is empty")
                continue
            if storable(text)[1]:
                self._reject(row, UNSTORABLE)
                continue
            if row.unsure and self.finder.is_text(document_id, text):
                self._reject(row, OWN_TEXT)
                continue

            self.n_of_lines += "\n" in query.strip()
            known = of_document.get(text)
            found = of_document.setdefault(text, _Query(score=row.document.score, logprob=logprob))
            before = len(found.negatives)

            for passage in passages:
                name = self.finder.find(passage)
                if name is None:
                    self._reject(row, f"there is no document {passage.shown}, named as a negative")
                elif name == document_id:
                    self._reject(row, "the document that answers the query is named as a negative, too")
                else:
                    found.negatives.setdefault(name, passage.score)

            if known is not None and len(found.negatives) == before:
                self._reject(row, "a query is repeated")

        if of_document:
            self.queries[self.positions[document_id]] = of_document

        return None

    def _each(self) -> Iterator[_Query]:
        """Every query of every document."""
        for queries in self.queries.values():
            yield from queries.values()

    @property
    def has_logprobs(self) -> bool:
        """Whether a query came with its log-probability."""
        return any(query.logprob is not None for query in self._each())

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says beside the queries: how many negatives there are, and that they have scores."""
        facts: dict[str, Any] = {}
        for query in self._each():
            if query.negatives:
                facts["hard_negatives"] = facts.get("hard_negatives", 0) + len(query.negatives)
            if query.teacher:
                facts["teacher"] = "imported"

        return facts

    def notes(self) -> list[str]:
        """Say how many documents were found by an id alone, and how many queries may be lists of them."""
        n = self.n_of_lines
        several = f"Each taken as one query, though of several lines: {n:,}." if n else ""
        words = (text.isascii() and " " not in text for queries in self.queries.values() for text in queries)
        ids = "No query has two words: if these are ids, choose another field." if all(words) else ""
        return list(filter(None, (self.finder.note, several, ids)))

    def lines(self, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield one line per document, in the order of the corpus."""
        for at, queries in sorted(self.queries.items()):
            line = {"document_id": ids[at], "position": at, "queries": list(queries)}
            known = list(queries.values())
            negatives = [list(query.negatives) for query in known]
            teacher = [query.teacher for query in known]
            logprobs = [query.logprob for query in known]

            if any(negatives):
                line["negatives"] = negatives
            if any(teacher):
                line["teacher"] = teacher
            if logprobs.count(None) < len(logprobs):
                line["logprobs"] = logprobs

            yield line

    def nothing(self, corpus_id: str, source: Path | None) -> InputError:
        """Return the error of an import without a single query."""
        rejected = f"{counted(self.n_rejected, 'row')} rejected"
        if self.n_not_relevant:
            rejected += f", {self.n_not_relevant} judged not relevant"

        message = f"There is no query to import ({rejected})."
        if 0 < self.n_unknown == self.n_rejected:
            message = f"None of the {self.n_rejected} rows belongs to a document of {corpus_id}."

        # One line for each reason.
        reasons = {reason.partition(": ")[2]: reason for reason in reversed(self.first_rejected)}
        hint = " ".join([*reversed(reasons.values())][:3]) or "The file is empty."
        if self.n_swapped:
            hint = f"The queries are texts of documents: choose the two fields the other way round. {hint}"
        return InputError(message, hint=hint, file=source)

    def _reject(self, row: QueryRow, reason: str) -> None:
        self.n_rejected += 1
        if len(self.first_rejected) < SHOWN_PROBLEMS:
            self.first_rejected.append(visible(f"Line {row.line}: {reason}."))
        record = {"line": row.line, "document_id": row.document.id, "reason": reason}
        self.log.write(json.dumps(record) + "\n")


def _text_hash(text: str) -> int:
    return hash(" ".join(text.split()))


class ImportOptions(Config):
    """Choices of the user about one import of queries. The defaults read what common tools export."""

    query_field: str | None = option(
        None,
        "The field or column with the query (in JSON also a list of queries); auto tries queries, query, questions, "
        "question, anchor, user_input, input, text. A query needs no id: the first one of document d becomes d-1.",
    )  # fmt: skip
    document_field: str | None = option(
        None,
        "The field or column with the id or the text of the document that a query is for, or a list of them; auto "
        "tries document_id, doc_id, docid, corpus-id, corpus_id, pid, then texts (text, passage, context …), _id, id, "
        "answer.",
    )  # fmt: skip
    header: bool = altered(
        ReadOptions,
        "header",
        help="Whether the first row of a CSV or TSV file names the columns. Without, the columns are called 1, 2, 3 …, "
        "and those of query and document have to be chosen.",
    )
    grade_field: str | None = option(
        None,
        "The field or column with the grade of the judgment: numbers, yes/no, true/false, relevant/not relevant. Rows "
        "of 0, below, or no are no pairs. auto tries grade, score, relevance, label, judgment, rating ….",
    )  # fmt: skip
    encoding: str = altered(ReadOptions, "encoding")
    origin: str = option(
        UNKNOWN, "Who wrote the queries: human, llm (a language model), or unknown.",
        reason="A file does not say; nothing is claimed until the origin is known.", choices=ORIGINS,
    )  # fmt: skip
    model: str = option("", "For llm: the model that wrote them, as far as known. Nothing is loaded.")
    prompt: str = option("", "For llm: the prompt, its name, or where it is described.")
    licence: str = option("", "The licence of the queries, such as CC BY-NC-SA 4.0.")

    def check(self) -> None:
        if not (self.header or (self.query_field and self.document_field)):
            raise ConfigError(
                "A table without a header has no names of columns.",
                hint="Choose the columns of query and document by their numbers: 1, 2, 3 ….",
            )
        check_encoding(self.encoding)
        check_origin(self.origin, self.model, self.prompt)


# Also where a query may stand, and a document's id: one that may be the query's own, too.
OWN_ID = ("_id", "id")
QUERY_FIELDS = (*GUESSES["question"], "anchor", "query_text", "user_input", "input", "text")
# Fields with these names hold texts of documents as often.
_UNSURE = {"input", *TEXT_FIELDS}
# Ids of queries whose texts or documents stand in other files.
_QUERY_IDS = ("query_id", "query-id", "qid", "q_id")
NEGATIVES = "negatives"
SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab", ".parquet")
# Rows from which the columns of a file are taken.
LOOKED_AT = 200


NOWHERE = NamedDocument()


@dataclass(frozen=True)
class QueryRow:
    """The queries that one line of a source has for one document, or the reason why it has none.

    ``negatives`` holds, for each query, its hard negatives; it is empty where the line names none, as ``logprobs`` is.
    A document of grade 0 was judged to be no answer. ``split`` is empty where no column names splits. ``unsure``: the
    field of the queries may be that of the document's text, or its id that of the query.
    """

    line: int
    document: NamedDocument = NOWHERE
    queries: tuple[str, ...] = ()
    reason: str = ""
    negatives: tuple[Sequence[NamedDocument], ...] = ()
    grade: int = 1
    logprobs: tuple[float | None, ...] = ()
    split: str = ""
    unsure: bool = False


class _Columns:
    """Which fields of a file's rows hold what, by the names in each row: JSON objects need not have the same."""

    def __init__(
        self, head: Sequence[Mapping[str, Any]], options: ImportOptions, reader: str, split: str | None
    ) -> None:
        self.options, self.table = options, reader != "jsonl"
        self.headed = self.table and reader != parquet.NAME
        self.grades = Grades(grade_columns(head, options.grade_field, (options.query_field, options.document_field)))
        self.names = list(dict.fromkeys(name for row in head for name in row))
        self.split = column_named(self.names, GUESSES["split"]) if split == AUTO else split
        self.scores = {name for name in SCORES for row in head if holds_scores(row.get(name))}
        self._known: dict[tuple[str, ...], tuple[list[str], list[str], str | None]] = {}

    def of(self, row: Mapping[str, Any]) -> tuple[list[str], list[str], str | None]:
        """The fields of a row that may hold the document's id, those that may hold the query, and that with the
        document's text (or, where it was chosen, either)."""
        names = tuple(row)
        if names not in self._known:
            if len(self._known) > LOOKED_AT:
                self._known = {}
            self._known[names] = self._roles(names)
        return self._known[names]

    def _roles(self, names: Sequence[str]) -> tuple[list[str], list[str], str | None]:
        document, query = self.options.document_field, self.options.query_field
        asked = self._named(query, QUERY_FIELDS, document, names)
        ids = self._named(document, GUESSES["document"], query, names)
        if document or ids:
            return ids, asked, ids[0] if document else None

        texts = columns_named([name for name in names if name not in asked[:1]], TEXT_FIELDS)
        if texts:
            return [], asked, texts[0]
        # BEIR's queries have an id of their own beside the text.
        own = [] if asked and asked[:1] == columns_named(names, ("text",)) else OWN_ID
        found = self._named(None, own, query, names)
        return found, asked, None if found else column_named(names, ANSWER)

    def names_documents(self, row: Mapping[str, Any]) -> bool:
        """Return False where the only id of a row may be the query's own."""
        return self.options.document_field is not None or not set(self.of(row)[0][:1]) & set(OWN_ID)

    def _named(self, field: str | None, guesses: Sequence[str], other: str | None, names: Sequence[str]) -> list[str]:
        """The field that was chosen, in a table in any case; else the guesses that are there, less the other field."""
        if not field:
            return [name for name in columns_named(names, guesses) if name != other]
        if field in names or not self.table:
            return [field]
        return columns_named(names, (field.lower(),)) or [field]

    def notes(self) -> list[str]:
        """How grades were read, and the columns that were not."""
        document, query, text = self.of(dict.fromkeys(self.names))
        used = {*document[:1], *query[:1], text, self.split, *self.grades.columns, NEGATIVES, *LOG_PROBS, *self.scores}
        unused = [name for name in self.names if name not in used and not holds_passages(name)]
        said = [self.grades.sentence(), not_taken(unused)]

        guessed = self.options.document_field is None and not any(map(holds_passages, self.names))
        if guessed and columns_named(document[:1], OWN_ID):
            said.append(f"Taken for the document's id: {document[0]}. If it is the query's own, choose another.")
        if scores := columns_named(unused, GUESSES["grade"]):
            said.append(f"{scores[0]} holds no grades: every row counts as an answer.")

        return list(filter(None, said))


def read_path(
    path: Path, options: ImportOptions, notes: list[str] | None = None, split: str | None = None
) -> Iterator[QueryRow]:
    """Yield the rows of a file; at the end what is said of them goes to ``notes``. ``split`` is the column that names
    splits (auto: by its name), None where there are none to read. InputError where the file cannot be read at all."""
    source = Source.of_file(existing(path), path.name, Budget.of(path))
    if path.is_dir() or source.suffix not in SUFFIXES:
        raise InputError(
            "Queries are read from .jsonl, .json, .csv and .tsv files (also .gz), and from .parquet.",
            hint="A folder in BEIR layout is added with its documents: projects add PATH. Of one that save_to_disk of "
            "datasets wrote, save the split to a file: .to_parquet(FILE).",
            file=path,
        )

    given = {"id_field": options.document_field, "text_field": options.query_field, "encoding": options.encoding}
    read = ReadOptions.from_dict({**given, "header": options.header})
    reader = format_of(source, read)
    assert isinstance(reader, RowFormat)
    # Parquet's reader of documents takes the columns of documents alone.
    given_rows: Iterable[Row | BadRow]
    if reader.name == parquet.NAME:
        given_rows = map(Row, itertools.count(1), parquet.records(source))
    else:
        given_rows = reader.rows(source, read)

    rows = itertools.chain.from_iterable(map(unfolded, given_rows))
    head = list(itertools.islice(rows, LOOKED_AT))
    columns = _Columns([row.values for row in head if isinstance(row, Row)], options, reader.name, split)
    for row in itertools.chain(head, rows):
        if isinstance(row, BadRow):
            yield QueryRow(row.line or 0, reason=f"{row.kind} ({row.reason})")
        else:
            yield from _rows(row.line or 0, row.values, columns)

    if notes is not None:
        notes += columns.notes()


def _rows(number: int, record: Mapping[str, Any], columns: _Columns) -> Iterator[QueryRow]:
    """Yield what a line says: a row, or one for each document that it holds as an answer."""
    _, _, field = columns.of(record)
    try:
        if columns.headed:
            record = {name: cell_of(value) for name, value in record.items()}
        if len(record) > 1 and all(isinstance(value, dict) for value in record.values()):
            raise ValueError('one object holds all rows: save one for each, in pandas by orient="records", lines=True')

        queries, unsure = _queries(record, columns)
        several = len(queries) > 1 and isinstance(record.get(field or ""), list) and len(record[field or ""]) > 1
        held = None if several else passages_of(record, field, chosen=columns.options.document_field is not None)
        if several or (held and len(held.positives) > 1 and len(queries) > 1):
            # A whole table in one object, column by column.
            raise ValueError("it has many queries and many documents: save a row for each query")

        documents = held.positives if held else [_document(record, columns)]
        unsure = unsure or not (held or columns.names_documents(record))
    except ValueError as error:
        yield QueryRow(number, reason=str(error))
        return

    try:
        beside = _beside(record, held, columns, len(queries))
    except ValueError as error:
        for document in documents:
            yield QueryRow(number, document, reason=str(error))
        return

    for document in documents:
        yield QueryRow(number, document, queries, unsure=unsure, **beside)


def _queries(record: Mapping[str, Any], columns: _Columns) -> tuple[tuple[str, ...], bool]:
    """Return the queries of a line, and whether they may be texts of documents. ValueError says why it has none."""
    _, fields, _ = columns.of(record)
    name = next((name for name in fields if name in record), "")
    queries = record.get(name)
    if isinstance(queries, str):
        queries = [queries]

    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        looked = _looked_for(columns.options.query_field, record, columns)
        if not name and columns_named(tuple(record), _QUERY_IDS):
            looked += f"; {_ELSEWHERE}"
        raise ValueError(f"there is no query, a text or a list of texts ({looked})")

    return tuple(queries), name.lower() in _UNSURE


def _document(record: Mapping[str, Any], columns: _Columns) -> NamedDocument:
    """Return the document that a line names by its id. ValueError says why it names none."""
    fields, _, _ = columns.of(record)
    document_id = first_value(record, fields, missing=(None, ""))
    if document_id is None:
        looked = _looked_for(columns.options.document_field, record, columns)
        if not fields and columns_named(tuple(record), (*OWN_ID, *_QUERY_IDS)):
            looked += f"; {_ELSEWHERE}"
        raise ValueError(f"there is no document id ({looked})")
    if isinstance(document_id, str):
        return NamedDocument(document_id.strip() if columns.table else document_id)

    return id_or_text(document_id)


# Of files with ids of queries: what pairs them.
_ELSEWHERE = "projects add reads a BEIR folder, whose qrels name them"


def _beside(record: Mapping[str, Any], held: RowDocuments | None, columns: _Columns, n_queries: int) -> dict[str, Any]:
    """Return grade, negatives, split and log-probabilities of a line's queries, as fields of ``QueryRow``.

    ValueError says why it has no grade or list of negatives.
    """
    grade = columns.grades.of(record)
    if grade is None:
        raise ValueError(f"no grade in {' or '.join(columns.grades.columns)}: {A_GRADE}")

    negatives = _negatives(record.get(NEGATIVES) or [], n_queries)
    if held and held.negatives:
        own = negatives or ((),) * n_queries
        negatives = tuple((*held.negatives, *each) for each in own)

    split = str(record.get(columns.split) or "") if columns.split else ""
    logprobs = log_probability(record, n_queries)
    return {"negatives": negatives, "grade": grade, "split": split, "logprobs": logprobs}


def _looked_for(chosen: str | None, record: Mapping[str, Any], columns: _Columns) -> str:
    """``choose its field among a, b``, or of a field that the user chose ``field qery; did you mean query?``."""
    names = [beginning(name, LONGEST_SHOWN) for name in itertools.islice(record, LOOKED_THROUGH)]
    if chosen is None:
        header = "; or say that the first row is no header" if columns.headed else ""
        return f"choose its field among {some(names, 10)}{header}"
    if chosen in record:
        return f"field {chosen}"

    near = nearest(chosen, names)
    return f"field {chosen}; did you mean {near}?" if near else f"field {chosen}"


def _negatives(value: Any, n_queries: int) -> tuple[tuple[NamedDocument, ...], ...]:
    """The hard negatives of each query: one list of document ids for all of them, or one list per query."""
    if not isinstance(value, list):
        raise ValueError(f'"{NEGATIVES}" is no list of document ids')
    if not value:
        return ()

    kinds = set(map(type, value))
    if list not in kinds:
        return (_ids(value),) * n_queries
    if len(value) != n_queries or kinds != {list}:
        raise ValueError(f'"{NEGATIVES}" has {len(value)} lists for {n_queries} queries')

    return tuple(map(_ids, value))


def _ids(value: list[Any]) -> tuple[NamedDocument, ...]:
    if {dict, list} & set(map(type, value)):
        raise ValueError(f'"{NEGATIVES}" is no list of document ids')
    return tuple(map(id_or_text, map(str, value)))


def read_pairs(pairs: Iterable[tuple[str, str | Iterable[str]]]) -> Iterator[QueryRow]:
    """Rows from (document id, query or queries) pairs; their number counts as the line."""
    for number, (document_id, queries) in enumerate(pairs, start=1):
        if isinstance(queries, str):
            queries = (queries,)
        yield QueryRow(number, NamedDocument(document_id), tuple(queries))
