"""Rows of the files that benchmarks are published in: Parquet, JSON Lines, a JSON array, CSV, TSV; text may be gzipped.

All are read as a stream, so that a collection of millions of passages takes no more memory than one batch of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError
from cdp.benchmarks.beir_files import Problems, lines_of, source_of
from cdp.corpus.checks import ids_in, listed
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import Row, RowFormat, format_of
from cdp.corpus.readers.parquet import records

SourceRow = Mapping[str, Any]

HINT = "Download the file again. If that does not help, its publisher has changed the layout."
STRICT = ReadOptions(encoding="utf-8")


def rows(path: Path) -> Iterator[SourceRow]:
    """The rows of one file as mappings. InputError for a kind of file that is not known, or a damaged one."""
    source = source_of(path)
    if path.suffix == ".parquet":
        yield from records(source)
        return
    reader, problems = format_of(source, STRICT), Problems(path.name)
    if not isinstance(reader, RowFormat):
        raise InputError("This kind of file is not known.", hint=HINT, file=path)
    for row in reader.rows(source, STRICT):
        if isinstance(row, Row):
            yield row.values
        else:
            problems.add(row.line or 0, f"{row.kind}: {row.reason}.")
    problems.raise_if_any(HINT)


def columns(path: Path, n: int) -> Iterator[list[str]]:
    """The lines of a tab-separated file without a header, as ``n`` columns each. InputError names every bad line."""
    problems = Problems(path.name)
    for number, line in lines_of(path):
        parts = (line or "").rstrip("\r\n").split("\t", n - 1)
        if len(parts) == n and all(parts):
            yield [part.strip() for part in parts]
        else:
            problems.add(number, f"This is not {n} columns with tabs between them.")
    problems.raise_if_any(HINT)


def value_of(row: Mapping[str, Any], *names: str, file: Path | str = "") -> Any:
    """The first of the named fields. InputError if none is there."""
    for name in names:
        if name in row:
            return row[name]

    present = listed(list(map(str, row))) or "nothing"
    raise InputError(f"There is no field {names[0]!r}; there is {present}.", hint=HINT, file=file or None)


def text_of(row: Mapping[str, Any], *names: str, file: Path | str = "", required: bool = True) -> str:
    """The same as text: numbers are written out, None is empty; empty too where none is there and none is required."""
    if not required and not any(name in row for name in names):
        return ""

    value = value_of(row, *names, file=file)
    if isinstance(value, (dict, list)):
        raise InputError(f"The field {names[0]!r} is no text.", hint=HINT, file=file or None)

    return "" if value is None else str(value)


def ids_of(row: Mapping[str, Any], *names: str, file: Path | str = "") -> list[str]:
    """The ids in the first of the named fields, a text or a list. InputError if none is there, or for a broken list."""
    value = value_of(row, *names, file=file)
    try:
        return [] if value is None or value == "" else ids_in(value)
    except ValueError as error:
        raise InputError(f"The field {names[0]!r}: {error}.", file=file or None) from error


def list_of(row: Mapping[str, Any], name: str) -> list[Any]:
    """A field that holds a list, or a list written as JSON; empty where there is none."""
    value = row.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return value if isinstance(value, list) else []
