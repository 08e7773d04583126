"""Parquet, in batches of a few hundred rows; only the columns that matter are read."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from cdp.corpus.fields import resolve_fields
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers.base import BadRow, Row, RowFormat
from cdp.corpus.sources import Source
from cdp.errors import InputError

BATCH_ROWS = 256


def rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """A row per row, numbered from 1. InputError for a file that is not whole Parquet."""
    with source.on_disk() as path:
        try:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                names = file.schema_arrow.names
                fields = resolve_fields(names, options, source.name)
                wanted = {fields.id, fields.title, fields.text, fields.queries}
                columns = [name for name in names if name in wanted]
                unread = dict.fromkeys(name for name in names if name not in wanted)
                number = 0
                for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
                    if source.budget is not None:
                        source.budget.spend(batch.nbytes)
                    for values in batch.to_pylist():
                        number += 1
                        yield Row(number, {**unread, **values} if number == 1 else values)
        except (pa.ArrowException, OSError) as error:
            problem = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"It cannot be read as Parquet: {problem}", file=source.name) from error


FORMAT = RowFormat("parquet", "Parquet", (".parquet", ".pq"), rows)
