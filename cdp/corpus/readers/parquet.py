"""Parquet, parsed in a process of its own; only the columns that matter are read.

A few bytes of Parquet can be any number of rows, elements or characters: what is said once is repeated by a dictionary,
by run lengths, or by a codec. So the process has a limit of memory, and what it gives is counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from cdp.base.errors import InputError
from cdp.corpus.checks import FieldMap, RefusedValueError, resolve_fields
from cdp.corpus.columns import texts_of
from cdp.corpus.extraction import table_reader
from cdp.corpus.grades import grade_of
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import Chunk, Item, Row, RowFormat
from cdp.corpus.readers.parquet_process import cost
from cdp.corpus.sources import ROW_BYTES, Source, shown_name

NAME = "parquet"
MAX_ROW_BYTES = 4 * MAX_LINE_CHARACTERS


def rows(source: Source, options: ReadOptions) -> Iterator[Row]:
    """A row per row, numbered from 1. InputError for a file that is not whole Parquet."""

    def wanted(names: Sequence[str]) -> list[str]:
        return _roles(names, resolve_fields(names, options, source.name))

    for number, row in enumerate(records(source, wanted), start=1):
        yield Row(number, row)


def stream(source: Source, options: ReadOptions) -> Iterator[Item]:
    """Yield what ``rows`` does, batches whose columns are texts as columns."""
    found: list[FieldMap] = []

    def wanted(names: Sequence[str]) -> list[str]:
        found.append(resolve_fields(names, options, source.name))
        return _roles(names, found[0])

    number = 1
    for batch, others in _batches(source, wanted):
        columns = {name: _texts(batch.column(name)) for name in batch.schema.names}
        plain = all(texts is not None for texts in columns.values()) and not (options.passages or found[0].queries)
        if plain:
            row = partial(_row, batch, others, number, source.name)
            lines = np.arange(number, number + batch.num_rows)
            yield Chunk(lines, {name: texts for name, texts in columns.items() if texts is not None}, row)
        else:
            for i, values in enumerate(_values(batch, source.name)):
                yield Row(number + i, {**others, **values} if others and number + i == 1 else values)
        number += batch.num_rows


def _row(batch: pa.RecordBatch, others: Mapping[str, None], first: int, file: str, i: int) -> Row:
    values = _values(batch.slice(i, 1), file)[0]
    return Row(first + i, {**others, **values} if others and first + i == 1 else values)


def _texts(column: pa.Array) -> pa.StringArray | None:
    """A column as texts; None where it holds something else, or text that is no UTF-8."""
    try:
        column.validate(full=True)
        return texts_of(column)
    except pa.ArrowInvalid:
        return None


def _roles(names: Sequence[str], fields: FieldMap) -> list[str]:
    roles = {fields.id, fields.title, fields.text, fields.queries, fields.grade}
    return [name for name in names if name in roles]


def records(source: Source, wanted: Callable[[Sequence[str]], Sequence[str]] = list) -> Iterator[dict[str, Any]]:
    """The rows as mappings, with the ``wanted`` of the columns; the first has the others too, as None."""
    for batch, others in _batches(source, wanted):
        for row in _values(batch, source.name):
            yield {**others, **row} if others else row
            others = {}


def _batches(
    source: Source, wanted: Callable[[Sequence[str]], Sequence[str]]
) -> Iterator[tuple[pa.RecordBatch, dict[str, None]]]:
    """The rows with the ``wanted`` of the columns, and the others' names with the first."""
    try:
        with source.on_disk() as path, table_reader() as process:
            unpacked = process.columns(path)
            names = list(unpacked)
            columns = wanted(names)
            before = source.budget.spent
            source.budget.spend(sum(unpacked[name] for name in columns))
            source.budget.spent = before  # what it says of itself; what comes is counted

            others = dict.fromkeys(name for name in names if name not in columns)
            for batch in process.batches(path, columns, ROW_BYTES, MAX_ROW_BYTES):
                source.budget.spend(cost(batch, ROW_BYTES))
                if batch.num_rows:
                    yield batch, others
                    others = {}
    except RefusedValueError as refused:
        raise InputError(f"It cannot be read as Parquet: {refused.reason}.", file=source.name) from refused


def _values(batch: pa.RecordBatch, file: str) -> list[dict[str, Any]]:
    """The rows as Python's values. InputError for dates that Python does not have, and text that is no UTF-8."""
    try:
        values: list[dict[str, Any]] = batch.to_pylist()
    except (pa.ArrowException, ValueError, LookupError, ArithmeticError) as error:
        problem = shown_name(str(error).splitlines()[0]) if str(error) else type(error).__name__
        raise InputError(f"It cannot be read as Parquet: it is damaged ({problem}).", file=file) from error
    for name in [field.name for field in batch.schema if _is_json(field.type)]:
        for row in values:
            row[name] = _of_json(row[name])

    for name, classes in _classes(batch.schema).items():
        for row in values:
            if row.get(name) in range(len(classes)):
                row[name] = classes[row[name]]

    return values


def _classes(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of classes whose numbers a column holds, as a ``ClassLabel`` of datasets.

    Two classes whose names are no grades are left as numbers: the first is the one that does not apply.
    """
    info = _of_json((schema.metadata or {}).get(b"huggingface", b"").decode(errors="replace"))
    found = {}
    for name in schema.names:
        feature = info
        for key in ("info", "features", name):
            feature = feature.get(key) if isinstance(feature, dict) else None
        classes = feature.get("names") if isinstance(feature, dict) else None
        if not isinstance(classes, list) or not all(isinstance(one, str) for one in classes):
            continue
        if len(classes) > 2 or any(grade_of(one) is not None for one in classes):
            found[name] = classes

    return found


def _is_json(type: pa.DataType) -> bool:
    return isinstance(type, pa.BaseExtensionType) and type.extension_name == "arrow.json"


def _of_json(value: Any) -> Any:
    """The value in a cell of JSON; the cell as it is where it holds none."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


FORMAT = RowFormat(NAME, "Parquet", "Parquet", (".parquet", ".pq"), rows, stream, order=40)
