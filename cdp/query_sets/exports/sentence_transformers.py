"""sentence-transformers: a Parquet file of pairs."""

from __future__ import annotations

from pathlib import Path

from cdp.query_sets.exports.base import Export, ExportSelection

ROWS = 8192


def write(selection: ExportSelection, target: Path) -> int:
    """A Parquet file with the columns ``anchor`` (the query) and ``positive`` (title and text of its document)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("anchor", pa.string()), ("positive", pa.string())])
    n = 0
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        rows: tuple[list[str], list[str]] = ([], [])
        for document, texts in selection.pairs():
            rows[0].extend(texts)
            rows[1].extend([document.content] * len(texts))
            if len(rows[0]) >= ROWS:
                n += len(rows[0])
                writer.write_table(pa.table(list(rows), schema=schema))
                rows = ([], [])
        writer.write_table(pa.table(list(rows), schema=schema))
    return n + len(rows[0])


EXPORT = Export(
    "sentence-transformers",
    "sentence-transformers",
    "A Parquet file with the columns anchor and positive.",
    ".parquet",
    write,
    order=20,
)
