"""The process that decodes Parquet: a program of its own that loads Arrow alone, and so starts in half the time.

Each line of standard input asks for a file: ``{"path": …}`` for its columns, which are answered by a line of JSON, or
``{"path": …, "columns": […]}`` for these as an Arrow stream, and a line behind it. ``row_bytes`` and ``max_row_bytes``
are the limits of ``cdp.corpus.readers.parquet``. See ``cdp.corpus.extraction``, which runs this file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Arrow works without these, whose imports take longer than decoding 50,000 rows.
    sys.modules.update(dict.fromkeys(("numpy", "cloudpickle")))  # type: ignore[arg-type]

import pyarrow as pa
import pyarrow.parquet as pq

# Rows that are decoded together; fewer where these need more memory than the process may have.
BATCH_ROWS = (4096, 32, 1)
MEMORY_BYTES = 2 << 30
# Bytes of what is handed on together.
PART_BYTES = 4 << 20
BUFFER = 1 << 20


class _RefusedError(Exception):
    """Raised with (kind, reason), which are answered."""


def main() -> None:
    """Answer requests until standard input ends."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    for line in sys.stdin:
        request = json.loads(line)
        try:
            _say(**_columns(request["path"]) if not request.get("columns") else _batches(**request))
        except _RefusedError as refused:
            _say(refused=refused.args)
        except MemoryError:
            _say(refused=["too long", "reading it takes more memory than a file may take"])
        except Exception as error:  # a fault of this file; the next may be sound
            detail = " ".join(str(error).replace(request["path"], Path(request["path"]).name).split())[:200]
            _say(refused=["unreadable file", f"it is damaged ({type(error).__name__}: {detail})"])


def _say(**answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _columns(path: str) -> dict[str, Any]:
    """The columns of a file, with the bytes that each unpacks to as it says."""
    with pq.ParquetFile(path) as file:
        unpacked = _unpacked(file)
        return {"names": list(unpacked), "unpacked": list(unpacked.values())}


def _batches(path: str, columns: Sequence[str], row_bytes: int, max_row_bytes: int) -> dict[str, Any]:
    """Write the named columns as an Arrow stream."""
    out, writer = sys.stdout.buffer, None
    try:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER) as file:
            for group in range(file.num_row_groups):
                for part in _parts(file, group, columns, row_bytes, max_row_bytes):
                    writer = writer or pa.ipc.new_stream(out, part.schema)
                    writer.write_batch(part)
    finally:  # what is said of a fault stands behind the stream
        (writer or pa.ipc.new_stream(out, pa.schema([]))).close()
    return {"report": {}}


def cost(batch: pa.RecordBatch, row_bytes: int) -> int:
    """Bytes of the values, and ``row_bytes`` for each row and for each element in it."""
    n: int = batch.nbytes + row_bytes * (batch.num_rows + sum(map(_elements, batch.columns)))
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


def _parts(
    file: pq.ParquetFile, group: int, columns: Sequence[str], row_bytes: int, max_row_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a group in parts of a few megabytes, decoded in batches that there is memory for."""
    done = 0
    for size in BATCH_ROWS:
        skip = done  # they were handed on before there was no memory for more

        try:
            for batch in _decoded(file, group, columns, size):
                before = min(skip, batch.num_rows)
                skip -= before
                for part in _divided(_plain(batch.slice(before)), row_bytes, max_row_bytes):
                    yield part
                    done += part.num_rows

            return
        except (MemoryError, pa.ArrowNotImplementedError):  # the latter where one array would hold 2 GB of elements
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
    schema = pa.schema([(field.name, _plain_type(field.type)) for field in batch.schema], batch.schema.metadata)
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


def _divided(batch: pa.RecordBatch, row_bytes: int, max_row_bytes: int) -> Iterator[pa.RecordBatch]:
    """The batch in parts of at most ``PART_BYTES``, or of one row."""
    size, half = cost(batch, row_bytes), batch.num_rows // 2
    if size > PART_BYTES and half:
        yield from _divided(batch.slice(0, half), row_bytes, max_row_bytes)
        yield from _divided(batch.slice(half), row_bytes, max_row_bytes)
    elif size > max_row_bytes:
        raise _RefusedError("too long", f"a row unpacks to more than {max_row_bytes / 1e6:,.0f} MB")
    else:
        yield batch


if __name__ == "__main__":
    main()
