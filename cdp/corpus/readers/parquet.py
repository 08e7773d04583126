"""Parquet, in batches of a few hundred rows; only the columns that matter are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cdp.base.errors import CdpError, InputError
from cdp.corpus.checks import resolve_fields
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import BadRow, Row, RowFormat
from cdp.corpus.sources import Source, shown_name

BATCH_ROWS = 256


def rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """A row per row, numbered from 1. InputError for a file that is not whole Parquet."""
    with source.on_disk() as path, _library_errors(source), pq.ParquetFile(path, pre_buffer=False) as file:
        names = file.schema_arrow.names
        fields = resolve_fields(names, options, source.name)
        wanted = {fields.id, fields.title, fields.text, fields.queries}
        columns = [name for name in names if name in wanted]
        unread = dict.fromkeys(name for name in names if name not in wanted)
        number = 0
        for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
            source.spend(batch.nbytes)
            cells = {name: values(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
            for i in range(batch.num_rows):
                number += 1
                row = {name: column[i] for name, column in cells.items()}
                bad = next(((name, value) for name, value in row.items() if isinstance(value, UnreadableValue)), None)
                if bad is not None:
                    reason = f"the field {bad[0]!r} cannot be read: {bad[1].reason}"
                    yield BadRow(number, "unreadable value", reason)
                    continue
                yield Row(number, {**unread, **row} if number == 1 else row)


class UnreadableValue:
    """Stands for a value that Arrow holds and Python cannot: text that is no UTF-8, a date beyond the year 9999."""

    def __init__(self, error: Exception) -> None:
        self.reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def values(column: pa.Array) -> list[Any]:
    """The values of a column; ``UnreadableValue`` where one cannot be had, so that it does not cost the others."""
    try:
        return list(column.to_pylist())
    except (ValueError, LookupError, ArithmeticError, TypeError, pa.ArrowException):
        return [_value(column, i) for i in range(len(column))]


def _value(column: pa.Array, i: int) -> Any:
    try:
        return column[i].as_py()
    except (ValueError, LookupError, ArithmeticError, TypeError, pa.ArrowException) as error:
        return UnreadableValue(error)


@contextmanager
def _library_errors(source: Source) -> Iterator[None]:
    """What pyarrow raises for a damaged file as InputError; its lists of errors grow with its versions."""
    try:
        yield
    except CdpError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, ArithmeticError, MemoryError) as error:
        problem = shown_name(str(error).splitlines()[0]) if str(error) else type(error).__name__
        raise InputError(f"It cannot be read as Parquet: {problem}", file=source.name) from error


FORMAT = RowFormat("parquet", "Parquet", "Parquet", (".parquet", ".pq"), rows, order=40)
