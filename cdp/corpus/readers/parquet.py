"""Parquet, in batches of a few hundred rows; only the columns that matter are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from cdp.base.errors import CdpError, InputError
from cdp.corpus.checks import resolve_fields
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import Row, RowFormat
from cdp.corpus.sources import Source, shown_name

BATCH_ROWS = 256


def rows(source: Source, options: ReadOptions) -> Iterator[Row]:
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
            for row in batch.to_pylist():
                number += 1
                yield Row(number, {**unread, **row} if number == 1 else row)


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
