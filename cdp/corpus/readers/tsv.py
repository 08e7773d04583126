"""TSV: a header row and cells between tabs, as MS MARCO and most IR collections have them."""

from __future__ import annotations

from collections.abc import Iterator

from cdp.corpus.options import ReadOptions
from cdp.corpus.readers.base import BadRow, Row, RowFormat
from cdp.corpus.readers.tables import parses, sample, table_rows
from cdp.corpus.sources import Source


def rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    quoted = options.quotes == "yes" or (options.quotes == "auto" and shows_quoting(sample(source, options)))
    yield from table_rows(source, options, "\t", quoted)


def shows_quoting(text: str) -> bool:
    """Whether quotation marks in the first rows wrap whole cells, as spreadsheets write them, in every row."""
    if '"' not in text:
        return False
    records = parses(text, "\t", True)
    if not records or any(len(record) != len(records[0]) for record in records):
        return False
    return records != parses(text, "\t", False)


FORMAT = RowFormat("tsv", "TSV", "TSV with a header row", (".tsv", ".tab"), rows, order=30)
