"""Rows of queries from JSONL, JSON, CSV, TSV (each also .gz) and BEIR folders or zips, and the options to read them."""

from __future__ import annotations

import itertools
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from cdp.base.errors import InputError, nearest, offer
from cdp.base.settings import Config, option
from cdp.corpus.checks import LONGEST_SHOWN, LOOKED_THROUGH, listed
from cdp.corpus.options import ReadOptions, check_encoding
from cdp.corpus.origin import ORIGINS, UNKNOWN, check_origin
from cdp.corpus.readers import BadRow, Row, row_format_of
from cdp.corpus.sources import DAMAGED, Budget, Source, existing, numbered_lines, open_text, shown_name


class ImportOptions(Config):
    """Choices of the user about one import of queries. The defaults read what common tools export."""

    query_field: str | None = option(
        None,
        "The field or column with the query (in JSON also a list of queries); auto tries queries, query, questions, "
        "question, text. A query needs no id: the first one of document d becomes d-1.",
    )
    document_field: str | None = option(
        None,
        "The field or column with the id of the document that a query is for; auto tries document_id, doc_id, docid, "
        "corpus-id, corpus_id, _id, id, pid.",
    )
    encoding: str = option(
        "utf-8",
        "The text encoding: utf-8, utf-16, cp1252, shift_jis, gb18030 …",
        reason="Nearly all data sets are published in it; another encoding is refused, not misread.",
    )
    split: str = option(
        "",
        "Of a BEIR folder only the qrels of this split. If empty all but test, which is for measuring: queries of it "
        "are imported only where it is named.",
    )
    origin: str = option(
        UNKNOWN,
        "Who wrote the queries: human, llm (a language model), or unknown.",
        reason="A file does not say; nothing is claimed until somebody knows.",
        choices=ORIGINS,
    )
    model: str = option("", "For llm: the model that wrote them, as far as known. Nothing is loaded.")
    prompt: str = option("", "For llm: the prompt, its name, or where it is described.")
    licence: str = option("", "The licence of the queries, such as CC BY-NC-SA 4.0.")

    def check(self) -> None:
        check_encoding(self.encoding)
        check_origin(self.origin, self.model, self.prompt)


DOCUMENT_FIELDS = ("document_id", "doc_id", "docid", "corpus-id", "corpus_id", "_id", "id", "pid")
QUERY_FIELDS = ("queries", "query", "questions", "question", "text")
NEGATIVES = "negatives"


@dataclass(frozen=True)
class QueryRow:
    """The queries that one line of a source has for one document, or the reason why it has none.

    ``negatives`` holds, for each query, the ids of its hard negatives; it is empty where the line names none.
    """

    line: int
    document_id: str = ""
    queries: tuple[str, ...] = ()
    reason: str = ""
    negatives: tuple[tuple[str, ...], ...] = ()


def _names(options: ImportOptions) -> tuple[Sequence[str], Sequence[str]]:
    """The fields to look for the document's id in and for the query; a chosen one is not guessed to be the other."""
    chosen = (options.document_field, options.query_field)
    document, query = (
        [field] if field else [name for name in guesses if name not in chosen]
        for field, guesses in zip(chosen, (DOCUMENT_FIELDS, QUERY_FIELDS), strict=True)
    )
    return document, query


def file_rows(source: Source, options: ImportOptions) -> Iterator[QueryRow]:
    """The rows of JSON Lines, a JSON array, CSV or TSV, streamed. InputError where a table lacks a column."""
    given = {"id_field": options.document_field, "text_field": options.query_field, "encoding": options.encoding}
    read = ReadOptions.from_dict(given)
    reader = row_format_of(source, read)
    fields, columns = _names(options), list[str]()
    for row in reader.rows(source, read):
        if not isinstance(row, Row):
            assert isinstance(row, BadRow)  # nobody said which fields count, so none come as columns
            yield QueryRow(row.line or 0, reason=f"{row.kind} ({row.reason})")
            continue
        values = row.values
        if reader.name != "jsonl":
            columns = columns or [_column(list(values), names, source.name) for names in fields]
            document, query = (values[name] for name in columns)
            values = {fields[0][0]: document.strip(), fields[1][0]: query}
        yield _row(row.line or 0, values, *fields)


def _row(
    number: int, record: Mapping[str, Any], document_fields: Sequence[str], query_fields: Sequence[str]
) -> QueryRow:
    document_id = next((record[name] for name in document_fields if record.get(name) not in (None, "")), None)
    if document_id is None:
        return QueryRow(number, reason=f"there is no document id ({_looked_for(document_fields, record)})")
    if isinstance(document_id, (dict, list)):
        return QueryRow(number, reason="the document id is neither text nor a number")
    value = next((record[name] for name in query_fields if name in record), None)
    queries = [value] if isinstance(value, str) else value
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        looked = _looked_for(query_fields, record)
        return QueryRow(number, str(document_id), reason=f"there is no query, a text or a list of texts ({looked})")
    try:
        negatives = _negatives(record.get(NEGATIVES) or [], len(queries))
    except ValueError as error:
        return QueryRow(number, str(document_id), reason=str(error))
    return QueryRow(number, str(document_id), tuple(queries), negatives=negatives)


def _looked_for(fields: Sequence[str], record: Mapping[str, Any]) -> str:
    """``one of query, text``, or of a field that the user chose ``field qery; did you mean query?``."""
    if len(fields) > 1:
        return f"one of {', '.join(fields)}"
    field_names = [name for name in itertools.islice(record, LOOKED_THROUGH) if len(name) <= LONGEST_SHOWN]
    near = "" if fields[0] in record else nearest(fields[0], field_names)
    return f"field {fields[0]}{f'; did you mean {near}?' if near else ''}"


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


def _column(header: Sequence[str], names: Sequence[str], file: str) -> str:
    """The first of ``names`` that the header has, upper and lower case alike."""
    lowered = {name.lower(): name for name in reversed(header)}
    column = next((lowered[name.lower()] for name in names if name.lower() in lowered), None)
    if column is not None:
        return column
    has = listed(header) or "nothing"
    if len(names) == 1:
        near = [name for name in header[:LOOKED_THROUGH] if len(name) <= LONGEST_SHOWN]
        raise InputError(f"There is no column {names[0]!r}.", hint=offer(names[0], near), file=file, line=1)
    raise InputError(
        f"The first line must name the columns document_id and query; it has {has}.",
        hint="Say with document_field and query_field which columns they are.",
        file=file,
        line=1,
    )


QUERIES = ("queries.jsonl", "queries.jsonl.gz")
QRELS = re.compile(r"qrels/[^/]+\.tsv")
TEST = "test"
WHOLE = re.compile(r"-?[0-9]{1,9}")
"""A grade. ``str.isdigit`` takes more for digits than ``int`` does."""


def beir_rows(path: Path, options: ImportOptions, budget: Budget) -> Iterator[QueryRow]:
    """The rows of a BEIR folder or zip; their lines are those of the qrels. InputError where it is none."""
    with _files(path, budget) as files:
        queries = next((files[name] for name in QUERIES if name in files), None)
        splits = {split: files[f"qrels/{split}.tsv"] for split in _splits(files)}
        if queries is None or not splits:
            missing = QUERIES[0] if queries is None else "qrels/*.tsv"
            raise InputError(f"There is no {missing} in it.", hint="Is it in BEIR layout?", file=path)
        chosen, _ = _chosen(path, list(splits), options.split)
        texts: dict[str, str] = {}
        own = ImportOptions(query_field="text", document_field="_id", encoding=options.encoding)
        for row in file_rows(queries, own):
            if row.reason:
                yield QueryRow(row.line, reason=f"{queries.name}: {row.reason}")
            else:
                texts[row.document_id] = row.queries[0]
        for split in chosen:
            yield from _judged(splits[split], texts, options.encoding)


def _chosen(path: Path, splits: list[str], wanted: str) -> tuple[list[str], list[str]]:
    if wanted:
        if wanted not in splits:
            raise InputError(f"It has no split {wanted!r}.", hint=offer(wanted, splits), file=path)
        return [wanted], []
    usable = [split for split in splits if split != TEST]
    if splits and not usable:
        raise InputError(
            "It has no split but test, which is for measuring: who trains on it cannot be evaluated on it any more.",
            hint=f"Add it as a benchmark. Or name the split to import it as queries all the same: split {TEST}.",
            file=path,
        )
    return usable, [split for split in splits if split not in usable]


def _judged(source: Source, texts: dict[str, str], encoding: str) -> Iterator[QueryRow]:
    with open_text(source, encoding) as text:
        for number, line in numbered_lines(text):
            cells = (line or "").rstrip("\r\n").split("\t")
            score = WHOLE.fullmatch(cells[-1].strip())
            if number == 1 and not score:
                continue
            if len(cells) not in (3, 4) or not score:
                yield QueryRow(number, reason=f"{source.name}: this is not query id, document id and score")
            elif int(score[0]) > 0:
                query, document_id = texts.get(cells[0]), cells[-2]
                reason = "" if query is not None else f"{source.name}: there is no query {cells[0]!r}"
                yield QueryRow(number, document_id, (query or "",), reason)


@contextmanager
def _files(path: Path, budget: Budget) -> Iterator[dict[str, Source]]:
    """The files below the folder that holds the queries, by their paths relative to it. A zip is not unpacked."""
    if path.is_dir():
        files = [file for file in path.rglob("*") if file.is_file()]
        yield {file.relative_to(path).as_posix(): Source.of_file(file, file.name, budget) for file in files}
        return
    try:
        archive = zipfile.ZipFile(path)
    except (*DAMAGED, OSError) as error:
        problem = shown_name(str(error))
        raise InputError(f"It cannot be opened as a zip: {problem}.", hint="Make it anew.", file=path) from error
    with archive:
        names = [name for name in archive.namelist() if not name.startswith("__MACOSX/")]
        tops = [PurePosixPath(name).parent for name in names if PurePosixPath(name).name in QUERIES]
        top = min(tops, key=lambda folder: len(folder.parts), default=PurePosixPath())
        yield {
            PurePosixPath(name).relative_to(top).as_posix(): Source(
                shown_name(PurePosixPath(name).name), partial(_opened, archive, name), budget
            )
            for name in names
            if PurePosixPath(name).is_relative_to(top)
        }


def _opened(archive: zipfile.ZipFile, name: str) -> BinaryIO:
    return cast(BinaryIO, archive.open(name))


MAX_UNPACKED_BYTES = 20 * 2**30


def read_pairs(pairs: Iterable[tuple[str, str | Iterable[str]]]) -> Iterator[QueryRow]:
    """Rows from (document id, query or queries) pairs; their number stands for the line."""
    for number, (document_id, queries) in enumerate(pairs, start=1):
        yield QueryRow(number, document_id, (queries,) if isinstance(queries, str) else tuple(queries))


def beir_layout(path: Path) -> list[str]:
    """The splits of a folder or a zip in BEIR layout; none for anything else."""
    path = existing(path)  # first: to look at a name that no file can have is an OSError
    if not path.is_dir() and path.suffix.lower() != ".zip":
        return []
    with _files(path, Budget.of(path, MAX_UNPACKED_BYTES)) as files:
        return _splits(files) if any(name in files for name in QUERIES) else []


def beir_splits(path: Path, options: ImportOptions) -> tuple[list[str], list[str]]:
    """(the splits of a BEIR folder or zip that are taken, those that are left out); both empty for another file."""
    splits = beir_layout(path)
    return _chosen(path, splits, options.split) if splits else ([], [])


def _splits(files: Iterable[str]) -> list[str]:
    return [name[6:-4] for name in sorted(files) if QRELS.fullmatch(name)]


def read_path(path: Path, options: ImportOptions) -> Iterator[QueryRow]:
    """The rows of a file or a BEIR folder, streamed. InputError where it cannot be read at all."""
    budget = Budget.of(existing(path), MAX_UNPACKED_BYTES)
    source = Source.of_file(path, path.name, budget)
    if path.is_dir() or source.suffix == ".zip":
        return beir_rows(path, options, budget)
    if source.suffix in (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab"):
        return file_rows(source, options)
    raise InputError(
        "Queries are read from .jsonl, .json, .csv and .tsv files (also .gz) and from BEIR folders (also .zip).",
        file=path,
    )
