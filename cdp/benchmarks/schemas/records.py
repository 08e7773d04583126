"""Rows of the files that benchmarks are published in: Parquet, JSON Lines, JSON, CSV, TSV; each may be gzipped text.

Everything but JSON and CSV's header is read as a stream, so that a collection of millions of passages takes no more
memory than one batch of it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cdp.base.errors import CdpError, InputError
from cdp.benchmarks.beir_files import Problems, lines_of, text_of_file, whole_text
from cdp.corpus.checks import listed
from cdp.corpus.sources import shown_name

Row = dict[str, Any]

BATCH = 2048
# Characters of a JSON file that is no JSON Lines; it has to be held as a whole.
LARGEST_JSON = 2**29

HINT = "Download the file again. If that does not help, its publisher has changed the layout."


def rows(path: Path) -> Iterator[Row]:
    """The rows of one file as mappings. InputError for a kind of file that is not known, or a damaged one."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".parquet"):
        yield from _parquet(path)
    elif name.endswith((".jsonl", ".ndjson")):
        yield from _json_lines(path)
    elif name.endswith(".json"):
        yield from _json(path)
    elif name.endswith((".csv", ".tsv")):
        yield from _separated(path, "\t" if name.endswith(".tsv") else ",")
    else:
        raise InputError("This kind of file is not known.", hint=HINT, file=path)


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=BATCH):
                yield from batch.to_pylist()
    except CdpError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, ArithmeticError, MemoryError) as error:
        problem = shown_name(str(error).splitlines()[0]) if str(error) else type(error).__name__
        raise InputError(f"It cannot be read as Parquet: {problem}.", hint=HINT, file=path) from error


def _json_lines(path: Path) -> Iterator[Row]:
    problems = Problems(path.name)
    for number, line in lines_of(path):
        try:
            value = json.loads(line or "")
        except (ValueError, RecursionError):
            problems.add(number, "This is not JSON.")
            continue
        if isinstance(value, dict):
            yield value
        else:
            problems.add(number, "This is JSON, but not an object.")
    problems.raise_if_any(HINT)


def _json(path: Path) -> Iterator[Row]:
    whole = whole_text(path, LARGEST_JSON, HINT)
    try:
        value = json.loads(whole)
    except (ValueError, RecursionError) as error:
        raise InputError(f"This is not JSON: {error}.", hint=HINT, file=path) from error
    if isinstance(value, dict):
        value = next((v for v in value.values() if isinstance(v, list)), [])
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise InputError("This is JSON, but not a list of objects.", hint=HINT, file=path)
    yield from value


def _separated(path: Path, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(1 << 28)
    with text_of_file(path) as text:
        reader = csv.reader(text, delimiter=delimiter)
        try:
            header = next(reader, [])
            for cells in reader:
                if cells:
                    yield dict(zip(header, cells, strict=False))
        except csv.Error as error:
            raise InputError(f"It cannot be read: {error}.", hint=HINT, file=path, line=reader.line_num) from error


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


def text_of(row: Mapping[str, Any], *names: str, file: Path | str = "", required: bool = True) -> str:
    """The first of the named fields as text: numbers are written out, None is empty. InputError if none is there."""
    for name in names:
        if name in row:
            value = row[name]
            if isinstance(value, (dict, list)):
                raise InputError(f"The field {name!r} is no text.", hint=HINT, file=file or None)
            return "" if value is None else str(value)
    if not required:
        return ""
    present = listed(list(map(str, row))) or "nothing"
    raise InputError(f"There is no field {names[0]!r}; there is {present}.", hint=HINT, file=file or None)


def list_of(row: Mapping[str, Any], name: str) -> list[Any]:
    """A field that holds a list, or a list written as JSON; empty where there is none."""
    value = row.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return value if isinstance(value, list) else []
