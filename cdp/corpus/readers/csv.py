"""CSV: a header row, cells between commas, semicolons, tabs or bars, quoted cells that may hold line breaks."""

from __future__ import annotations

from collections.abc import Iterator

from cdp.corpus.checks import GUESSES
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers.base import BadRow, Row, RowFormat
from cdp.corpus.readers.tables import parses, sample, table_rows
from cdp.corpus.sources import Source

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


def rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    quoted = options.quotes != "no"
    if options.delimiter == "auto":
        delimiter = find_delimiter(sample(source, options), options, quoted)
    else:
        delimiter = DELIMITERS[options.delimiter]
    yield from table_rows(source, options, delimiter, quoted)


def find_delimiter(text: str, options: ReadOptions, quoted: bool = True) -> str:
    """The delimiter under which the header shows most of the wanted columns and the rows are equally wide.

    Compared in this order: wanted names in the header, share of rows as wide as the header, number of columns. A
    comma where nothing speaks for another.
    """
    wanted = {name for guesses in GUESSES.values() for name in guesses}
    wanted |= {name.lower() for name in (options.id_field, options.title_field, options.text_field) if name}
    best, best_score = ",", (0, 0.0, 1)
    for delimiter in DELIMITERS.values():
        records = parses(text, delimiter, quoted) or parses(text, delimiter, False) or []
        if not records or len(records[0]) < 2:
            continue
        width = len(records[0])
        n_wanted = len(wanted & {cell.strip().strip('"').lower() for cell in records[0]}) if options.header else 0
        even = sum(len(record) == width for record in records) / len(records)
        score = (n_wanted, round(even, 2), width)
        if score > best_score:
            best, best_score = delimiter, score
    return best


FORMAT = RowFormat("csv", "CSV", "CSV with a header row", (".csv",), rows, order=20)
