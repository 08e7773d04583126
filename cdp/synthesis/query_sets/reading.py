"""Rows of queries from files that users have: JSONL, CSV, TSV (each also .gz) and folders in BEIR layout."""

from __future__ import annotations

import csv
import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp.corpus.decoding import numbered_lines, open_text
from cdp.corpus.sources import Budget, Source
from cdp.errors import InputError

ID_FIELDS = ("document_id", "doc_id", "docid", "corpus-id", "corpus_id", "_id", "id", "pid")
NEGATIVES = "negatives"
QUERY_FIELDS = ("queries", "query", "questions", "question", "text")
MAX_UNPACKED_BYTES = 20 * 2**30


@dataclass(frozen=True)
class Row:
    """The queries that one line of a source has for one document, or the reason why it has none.

    ``negatives`` holds, for each query, the ids of its hard negatives; it is empty where the line names none.
    """

    line: int
    document_id: str = ""
    queries: tuple[str, ...] = ()
    reason: str = ""
    negatives: tuple[tuple[str, ...], ...] = ()


def read_pairs(source: Iterable[tuple[str, str | Iterable[str]]]) -> Iterator[Row]:
    """Rows from (document id, query or queries) pairs; their number stands for the line."""
    for number, (document_id, queries) in enumerate(source, start=1):
        yield Row(number, document_id, (queries,) if isinstance(queries, str) else tuple(queries))


def read_path(path: Path, split: str = "", encoding: str = "utf-8") -> Iterator[Row]:
    """The rows of a file or a BEIR folder, streamed. InputError where it cannot be read at all."""
    if not path.exists():
        raise InputError(f"{path} does not exist.")
    if path.is_dir():
        return _beir(path, split, encoding)
    kind = path.name.lower().removesuffix(".gz").rsplit(".", 1)[-1]
    if kind in ("jsonl", "ndjson"):
        return _jsonl(path, encoding)
    if kind in ("csv", "tsv"):
        return _table(path, "\t" if kind == "tsv" else ",", encoding)
    raise InputError("Queries are read from .jsonl, .csv and .tsv files (also .gz) and from BEIR folders.", file=path)


def _source(path: Path) -> Source:
    return Source.of_file(path, path.name, Budget(MAX_UNPACKED_BYTES))


def _jsonl(path: Path, encoding: str) -> Iterator[Row]:
    with open_text(_source(path), encoding) as text:
        for number, line in numbered_lines(text):
            if line is None:
                yield Row(number, reason="the line is too long")
            elif line.strip():
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    yield Row(number, reason=f"this is not JSON ({error})")
                else:
                    yield _row(number, record)


def _row(number: int, record: Any) -> Row:
    if not isinstance(record, Mapping):
        return Row(number, reason="this is not a JSON object")
    document_id = next((record[name] for name in ID_FIELDS if record.get(name) not in (None, "")), None)
    if document_id is None:
        return Row(number, reason=f"there is no document id (one of {', '.join(ID_FIELDS)})")
    value = next((record[name] for name in QUERY_FIELDS if name in record), None)
    queries = [value] if isinstance(value, str) else value
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        return Row(number, str(document_id), reason='there is no "queries" (a list of texts) or "query" (a text)')
    try:
        negatives = _negatives(record.get(NEGATIVES) or [], len(queries))
    except ValueError as error:
        return Row(number, str(document_id), reason=str(error))
    return Row(number, str(document_id), tuple(queries), negatives=negatives)


def _negatives(value: Any, n_queries: int) -> tuple[tuple[str, ...], ...]:
    """The hard negatives of each query: one list of document ids for all of them, or one list per query."""
    if not isinstance(value, list):
        raise ValueError(f'"{NEGATIVES}" is no list of document ids')
    if not any(isinstance(item, list) for item in value):
        return (tuple(map(str, value)),) * n_queries if value else ()
    if len(value) != n_queries or not all(isinstance(item, list) for item in value):
        raise ValueError(f'"{NEGATIVES}" has {len(value)} lists for {n_queries} queries')
    return tuple(tuple(map(str, item)) for item in value)


def _table(path: Path, delimiter: str, encoding: str) -> Iterator[Row]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with open_text(_source(path), encoding, newline="") as text:
        first = text.readline()
        if delimiter == "," and not re.search(r"[,\"]", first):
            delimiter = next((mark for mark in ";\t|" if mark in first), delimiter)
        reader = csv.reader(itertools.chain([first], text), delimiter=delimiter)
        try:
            header = [name.strip().lower() for name in next(reader, [])]
            id_at = next((header.index(name) for name in ID_FIELDS if name in header), None)
            query_at = next((header.index(name) for name in QUERY_FIELDS if name in header), None)
            if id_at is None or query_at is None:
                has = ", ".join(header) or "nothing"
                raise InputError(
                    f"The first line must name the columns document_id and query; it has {has}.", file=path, line=1
                )
            for cells in reader:
                if cells and len(cells) <= max(id_at, query_at):
                    yield Row(reader.line_num, reason=f"there are {len(cells)} of {len(header)} columns")
                elif cells:
                    yield Row(reader.line_num, cells[id_at].strip(), (cells[query_at],))
        except csv.Error as error:
            raise InputError(f"The table cannot be read: {error}.", file=path, line=reader.line_num) from error


def _beir(folder: Path, split: str, encoding: str) -> Iterator[Row]:
    """Each query of a BEIR folder for each document judged relevant to it; the lines are those of the qrels."""
    candidates = (folder / "queries.jsonl", folder / "queries.jsonl.gz")
    queries_file = next((path for path in candidates if path.exists()), None)
    qrels = sorted((folder / "qrels").glob(f"{split or '*'}.tsv"))
    if queries_file is None or not qrels:
        missing = "queries.jsonl" if queries_file is None else f"qrels/{split or '*'}.tsv"
        raise InputError(f"There is no {missing} in it.", hint="Is it in BEIR layout?", file=folder)
    texts: dict[str, str] = {}
    for row in _jsonl(queries_file, encoding):
        if row.reason:
            yield Row(row.line, reason=f"{queries_file.name}: {row.reason}")
        else:
            texts[row.document_id] = row.queries[0]
    for path in qrels:
        with open_text(_source(path), encoding) as text:
            for number, line in numbered_lines(text):
                cells = (line or "").rstrip("\r\n").split("\t")
                judged = cells[-1].strip().lstrip("-").isdigit()
                if number == 1 and not judged:
                    continue
                if len(cells) not in (3, 4) or not judged:
                    yield Row(number, reason=f"{path.name}: this is not query id, document id and score")
                elif int(cells[-1]) > 0:
                    query, document_id = texts.get(cells[0]), cells[-2]
                    reason = "" if query is not None else f"{path.name}: there is no query {cells[0]!r}"
                    yield Row(number, document_id, (query or "",), reason)
