"""Target queries from a file of the user's: plain lines, JSON Lines, or a table with a column of queries."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.corpus.sources import Budget, Source, existing, open_text
from cdp.services.sharing import paths

FIELDS = ("query", "text", "question")
"""Names of the field or column that holds a query, in the order in which they are looked for."""

MOST_BYTES = 2**27
"""Target queries are held in memory."""

DELIMITERS = {".csv": ",;", ".tsv": "\t", ".tab": "\t"}
PLAIN = "Give a text file with one query per line, JSON Lines, or a CSV with a column named query; saved as UTF-8."


def read_queries(path: str | Path) -> list[str]:
    """The queries of a file, in its order: one per line, objects with a ``query`` or ``text`` field, or a column.

    UTF-8, or any encoding that the file's byte order mark tells. InputError names what cannot be read and its line.
    """
    file = paths.to_read(Workspace.default(), path)
    if existing(file, "file").is_dir():
        raise InputError("It is a folder.", file=file, hint=PLAIN)
    source = Source.of_file(file, file.name, Budget.of(file, MOST_BYTES))
    try:
        with open_text(source, _encoding(source), newline="") as text:
            content = text.read()
    except InputError as error:
        raise InputError(error.message, hint=PLAIN) from None
    table = _column(content, DELIMITERS[source.suffix], source) if source.suffix in DELIMITERS else None
    queries = table if table is not None else list(_lines(content, source))
    if not queries:
        raise InputError("It holds no query.", file=file, hint=PLAIN)
    return queries


def _encoding(source: Source) -> str:
    """What the byte order mark at the file's beginning says, else UTF-8."""
    with source.open() as stream:
        head = source.read_block(stream, 4)
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"


def _column(content: str, delimiters: str, source: Source) -> list[str] | None:
    """The queries of a table's column; None where its first row names none, so that it is plain lines."""
    header = content.partition("\n")[0]
    delimiter = max(delimiters, key=header.count)
    try:
        rows = csv.reader(io.StringIO(content), delimiter=delimiter, strict=True)
        names = {name.strip().lower(): at for at, name in enumerate(next(rows, []))}
        column = next((names[name] for name in FIELDS if name in names), None)
        return None if column is None else [text for row in rows if len(row) > column and (text := row[column].strip())]
    except csv.Error as error:
        raise InputError(f"It is not a table ({error}).", file=source.name, hint=PLAIN) from None


def _lines(content: str, source: Source) -> Iterator[str]:
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            yield _query_of(line.strip(), source, number)


def _query_of(line: str, source: Source, number: int) -> str:
    if not line.startswith("{"):
        return line
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = {}
    query = next((record[name] for name in FIELDS if record.get(name)), None)
    if not isinstance(query, str):
        raise InputError(
            "not a JSON object with a text or query field.", file=source.name, line=number, hint="Or give plain lines."
        )
    return query.strip()
