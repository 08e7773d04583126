"""Parquet, parsed in a process of its own; only the columns that matter are read.

A few bytes of Parquet can be any number of rows, elements or characters: what is said once is repeated by a dictionary,
by run lengths, or by a codec. So the process has a limit of memory, and what it gives is counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdp.base.errors import InputError
from cdp.corpus.checks import FieldMap, RefusedValueError, resolve_fields
from cdp.corpus.columns import texts_of
from cdp.corpus.extraction import table_reader
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import Chunk, Item, Row, RowFormat
from cdp.corpus.sources import ROW_BYTES, Source, shown_name

NAME = "parquet"
# Rows that are decoded together; fewer where these need more memory than the process may have.
BATCH_ROWS = (1024, 32, 1)
MEMORY_BYTES = 2 << 30
# Of what is handed on together, and of a single row.
PART_BYTES, MAX_ROW_BYTES = 4 << 20, 4 * MAX_LINE_CHARACTERS
BUFFER = 1 << 20


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
            row = partial(_row, batch, others, number)
            lines = np.arange(number, number + batch.num_rows)
            yield Chunk(lines, {name: texts for name, texts in columns.items() if texts is not None}, row)
        else:
            for i, values in enumerate(_values(batch)):
                yield Row(number + i, {**others, **values} if others and number + i == 1 else values)
        number += batch.num_rows


def _row(batch: pa.RecordBatch, others: Mapping[str, None], first: int, i: int) -> Row:
    values = _values(batch.slice(i, 1))[0]
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
        for row in _values(batch):
            yield {**others, **row} if others else row
            others = {}


def _batches(
    source: Source, wanted: Callable[[Sequence[str]], Sequence[str]]
) -> Iterator[tuple[pa.RecordBatch, dict[str, None]]]:
    """The rows with the ``wanted`` of the columns, and the others' names with the first."""
    try:
        with source.on_disk() as path, table_reader() as process:
            unpacked = process.columns(NAME, path)
            names = list(unpacked)
            columns = wanted(names)
            before = source.budget.spent
            source.budget.spend(sum(unpacked[name] for name in columns))
            source.budget.spent = before  # what it says of itself; what comes is counted

            others = dict.fromkeys(name for name in names if name not in columns)
            for batch in process.batches(NAME, path, columns):
                source.budget.spend(cost(batch))
                if batch.num_rows:
                    yield batch, others
                    others = {}
    except RefusedValueError as refused:
        raise InputError(f"It cannot be read as Parquet: {refused.reason}.", file=source.name) from refused


def _values(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as Python's values. RefusedValueError for dates that Python does not have, and text that is no UTF-8."""
    try:
        values: list[dict[str, Any]] = batch.to_pylist()
    except (pa.ArrowException, ValueError, LookupError, ArithmeticError) as error:
        problem = shown_name(str(error).splitlines()[0]) if str(error) else type(error).__name__
        raise RefusedValueError("unreadable file", f"it is damaged ({problem})") from error
    for name in [field.name for field in batch.schema if _is_json(field.type)]:
        for row in values:
            row[name] = _of_json(row[name])
    return values


def _is_json(type: pa.DataType) -> bool:
    return isinstance(type, pa.BaseExtensionType) and type.extension_name == "arrow.json"


def _of_json(value: Any) -> Any:
    """The value in a cell of JSON; the cell as it is where it holds none."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def cost(batch: pa.RecordBatch) -> int:
    """Bytes of the values, and ``ROW_BYTES`` for each row and for each element in it."""
    n: int = batch.nbytes + ROW_BYTES * (batch.num_rows + sum(map(_elements, batch.columns)))
    return n


def _elements(values: pa.Array) -> int:
    """The values inside of lists and structures, at all depths."""
    if pa.types.is_map(values.type):
        return 8 * int(values.nbytes)  # at most: a key may be a bit
    if isinstance(values, pa.StructArray):
        return sum(len(inner) + _elements(inner) for inner in values.flatten())
    if isinstance(values, (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)):
        inner = values.flatten()
        return len(inner) + _elements(inner)
    return 0


def serve(say: Callable[..., None], out: IO[bytes], path: str, format: str, columns: Sequence[str] = ()) -> None:
    """In the reading process: say the columns of a file; or write the named ones as an Arrow stream."""
    if not columns:
        with pq.ParquetFile(path) as file:
            unpacked = _unpacked(file)
            say(names=list(unpacked), unpacked=list(unpacked.values()))
        return

    writer = None
    try:
        with _less_memory(), pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER) as file:
            for group in range(file.num_row_groups):
                for part in _parts(file, group, columns):
                    writer = writer or pa.ipc.new_stream(out, part.schema)
                    writer.write_batch(part)
    finally:  # what is said of a fault stands behind the stream
        (writer or pa.ipc.new_stream(out, pa.schema([]))).close()
    say(report={})


def _unpacked(file: pq.ParquetFile) -> dict[str, int]:
    """The columns, with the bytes that each unpacks to as the file says."""
    sizes = dict.fromkeys(file.schema_arrow.names, 0)
    for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            path = column.path_in_schema  # ``queries.list.element``; a name may have dots too
            while path not in sizes and "." in path:
                path = path.rpartition(".")[0]
            sizes[path] = sizes.get(path, 0) + max(0, column.total_uncompressed_size)
    return sizes


@contextmanager
def _less_memory() -> Iterator[None]:
    """Limit this process's memory to ``MEMORY_BYTES``, where the system can."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, hard))
    except (ImportError, ValueError, OSError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _parts(file: pq.ParquetFile, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a group in parts of a few megabytes, decoded in batches that there is memory for."""
    done = 0
    for size in BATCH_ROWS:
        skip = done  # they were handed on before there was no memory for more

        try:
            for batch in _decoded(file, group, columns, size):
                before = min(skip, batch.num_rows)
                skip -= before
                for part in _divided(_plain(batch.slice(before))):
                    yield part
                    done += part.num_rows

            return
        except (MemoryError, pa.ArrowNotImplementedError):  # which says that there are 2 GB of elements
            if size == BATCH_ROWS[-1]:
                raise


def _decoded(file: pq.ParquetFile, group: int, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
    schema = file.schema_arrow
    if any(_plain_type(schema.field(name).type) != schema.field(name).type for name in columns):
        # Each batch of a file's reader would bring the whole dictionary.
        return iter(file.read_row_group(group, columns, use_threads=False).to_batches(max_chunksize=size))
    batches: Iterator[pa.RecordBatch] = file.iter_batches(size, [group], columns, use_threads=False)
    return batches


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = pa.schema([(field.name, _plain_type(field.type)) for field in batch.schema])
    return batch if schema.equals(batch.schema) else batch.cast(schema)


def _plain_type(type: pa.DataType) -> pa.DataType:
    """The type without dictionaries and views, whose values stand somewhere else, at all depths."""
    if pa.types.is_dictionary(type):
        return _plain_type(type.value_type)
    if pa.types.is_string_view(type) or pa.types.is_binary_view(type):
        return pa.large_string() if pa.types.is_string_view(type) else pa.large_binary()
    if pa.types.is_struct(type):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in type])
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        inner = type.value_field.with_type(_plain_type(type.value_type))
        return pa.list_(inner) if pa.types.is_list(type) else pa.large_list(inner)
    return type


def _divided(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in parts of at most ``PART_BYTES``, or of one row."""
    size, half = cost(batch), batch.num_rows // 2
    if size > PART_BYTES and half:
        yield from _divided(batch.slice(0, half))
        yield from _divided(batch.slice(half))
    elif size > MAX_ROW_BYTES:
        raise RefusedValueError("too long", f"a row unpacks to more than {MAX_ROW_BYTES / 1e6:,.0f} MB")
    else:
        yield batch


FORMAT = RowFormat(NAME, "Parquet", "Parquet", (".parquet", ".pq"), rows, stream, order=40)
