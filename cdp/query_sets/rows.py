"""Rows of queries: what one line of a JSON file or of a table says of one document's queries."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdp.base.errors import InputError, nearest, offer
from cdp.corpus.decoding import numbered_lines, open_text
from cdp.corpus.fields import LONGEST_SHOWN, LOOKED_THROUGH, listed
from cdp.corpus.json_objects import json_values
from cdp.corpus.options import MAX_LINE_CHARACTERS
from cdp.corpus.sources import Source
from cdp.query_sets.options import ImportOptions

DOCUMENT_FIELDS = ("document_id", "doc_id", "docid", "corpus-id", "corpus_id", "_id", "id", "pid")
QUERY_FIELDS = ("queries", "query", "questions", "question", "text")
NEGATIVES = "negatives"


@dataclass(frozen=True)
class QueryRow:
    """The queries that one line of a source has for one document, or the reason why it has none.

    ``negatives`` holds, for each query, the ids of its hard negatives; it is empty where the line names none.
    ``reasoned`` holds the reasoned form of each query where such a field was named; empty texts where there is none.
    """

    line: int
    document_id: str = ""
    queries: tuple[str, ...] = ()
    reason: str = ""
    negatives: tuple[tuple[str, ...], ...] = ()
    reasoned: tuple[str, ...] = ()


def _names(options: ImportOptions) -> tuple[Sequence[str], Sequence[str]]:
    """The fields to look for the document's id in and for the query; a chosen one is not guessed to be the other."""
    chosen = (options.document_field, options.query_field)
    document, query = (
        [field] if field else [name for name in guesses if name not in chosen]
        for field, guesses in zip(chosen, (DOCUMENT_FIELDS, QUERY_FIELDS), strict=True)
    )
    return document, query


def json_rows(source: Source, options: ImportOptions) -> Iterator[QueryRow]:
    """The rows of JSON Lines or of a JSON array of objects, streamed."""
    fields = _names(options)
    for number, record, text, problem in json_values(source, options.encoding):
        if problem:
            yield QueryRow(number, reason=f"this is not JSON ({problem})" if text else problem)
        else:
            yield _row(number, record, *fields, options.reasoning_field)


def _row(
    number: int, record: Any, document_fields: Sequence[str], query_fields: Sequence[str], reasoning_field: str
) -> QueryRow:
    if not isinstance(record, Mapping):
        return QueryRow(number, reason="this is not a JSON object")
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
        reasoned = _reasoned(record, reasoning_field, len(queries))
    except ValueError as error:
        return QueryRow(number, str(document_id), reason=str(error))
    return QueryRow(number, str(document_id), tuple(queries), negatives=negatives, reasoned=reasoned)


def _reasoned(record: Mapping[str, Any], field: str, n_queries: int) -> tuple[str, ...]:
    """The reasoned form of each query, empty where the row has none."""
    if not field:
        return ()
    value = record.get(field)
    texts = [value] if isinstance(value, str) else [""] * n_queries if value is None else value
    if not isinstance(texts, list) or len(texts) != n_queries or not all(isinstance(t, str | None) for t in texts):
        raise ValueError(f"field {field} is no text or list of texts, one for each of {n_queries} queries")
    return tuple(text or "" for text in texts)


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


def table_rows(source: Source, delimiter: str, options: ImportOptions) -> Iterator[QueryRow]:
    """The rows of a table with a header, streamed. InputError where the columns are not there."""
    csv.field_size_limit(MAX_LINE_CHARACTERS)
    with open_text(source, options.encoding, newline="") as text:
        lines = _lines(text, source)
        first = next(lines, "")
        if delimiter == "," and not re.search(r"[,\"]", first):
            delimiter = next((mark for mark in ";\t|" if mark in first), delimiter)
        reader = csv.reader(itertools.chain([first], lines), delimiter=delimiter)
        header: list[str] | None = None
        id_at = query_at = 0
        reasoned_at: int | None = None
        while True:
            begins = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:  # a row that cannot be told apart does not cost the others
                yield QueryRow(begins, reason=f"the row cannot be read ({error})")
                continue
            if header is None:
                header = [name.strip() for name in cells]
                id_at, query_at = (_column(header, names, source.name) for names in _names(options))
                if options.reasoning_field:
                    reasoned_at = _column(header, [options.reasoning_field], source.name)
            elif cells and len(cells) <= max(id_at, query_at, reasoned_at or 0):
                yield QueryRow(reader.line_num, reason=f"there are {len(cells)} of {len(header)} columns")
            elif cells:
                reasoned = () if reasoned_at is None else (cells[reasoned_at],)
                yield QueryRow(reader.line_num, cells[id_at].strip(), (cells[query_at],), reasoned=reasoned)


def _lines(text: io.TextIOWrapper, source: Source) -> Iterator[str]:
    for number, line in numbered_lines(text):
        if line is None:
            raise InputError(
                f"The line is longer than {MAX_LINE_CHARACTERS:,} characters.",
                hint="This is hardly a table.",
                file=source.name,
                line=number,
            )
        yield line


def _column(header: Sequence[str], names: Sequence[str], file: str) -> int:
    """Where the first of ``names`` stands in the header, upper and lower case alike."""
    lowered = {name.lower(): at for at, name in reversed(list(enumerate(header)))}
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
