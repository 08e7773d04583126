"""CSV and TSV: delimiters, a header row, quotes, cells that hold line breaks.

TSV as MS MARCO and most IR collections have it; CSV with commas, semicolons, tabs or bars.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.base.text import counted
from cdp.corpus.checks import GUESSES, excerpt, listed
from cdp.corpus.columns import Layout, in_columns, resolved, texts_of
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import BadRow, Item, Row, RowFormat
from cdp.corpus.sources import Source, encoding_of_head, numbered_lines, open_text

SAMPLE_CHARACTERS = 1 << 18
Cells = tuple[int, list[str]]


def sample(source: Source, options: ReadOptions) -> str:
    """The whole lines among the first 262,144 characters, from which delimiter and quoting are detected."""
    with open_text(source, options.encoding, newline="") as text:
        head = text.read(SAMPLE_CHARACTERS)
    if len(head) < SAMPLE_CHARACTERS:
        return head
    return head[: head.rfind("\n") + 1] or head


# The delimiter of a table, and whether cells are quoted.
Shape = Callable[[Source, ReadOptions], tuple[str, bool]]


def table_rows(shape: Shape, source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """Return the rows of a table as mappings from column to cell; blank lines are skipped."""
    return _rows(source, options, *shape(source, options))


def _rows(source: Source, options: ReadOptions, delimiter: str, quoted: bool) -> Iterator[Row | BadRow]:
    with open_text(source, options.encoding, newline="" if quoted else "\n") as text:
        header: list[str] | None = None
        for record in _records(source, text, delimiter, quoted):
            if header is None and not isinstance(record, BadRow):
                header = _header(source, record[1], options)
                if options.header:
                    continue
            yield record if isinstance(record, BadRow) else _row(record, header or [], delimiter)


def _records(source: Source, text: io.TextIOBase, delimiter: str, quoted: bool) -> Iterator[Cells | BadRow]:
    return _quoted(source, text, delimiter) if quoted else _plain(text, delimiter)


def _row(record: Cells, header: list[str], delimiter: str) -> Row | BadRow:
    line, cells = record
    if len(cells) == len(header):
        return Row(line, dict(zip(header, cells, strict=True)))
    reason = f"{counted(len(cells), 'cell')} where {len(header)} are expected"
    return BadRow(line, "wrong number of cells", reason, excerpt(delimiter.join(cells)))


def table_stream(shape: Shape, source: Source, options: ReadOptions) -> Iterator[Item]:
    """Return what ``table_rows`` does, rows that Arrow can parse as columns."""
    from pyarrow import csv as arrow

    with encoding_of_head(source, options.encoding):
        delimiter, quoted = shape(source, options)
        rows = partial(_rows, source, options, delimiter, quoted)
        head, fields = resolved(source, options, rows)

    # Where a blank line or a fault stands above the first row, blocks do not begin with the header.
    if fields is None or head[0].line != 1 + options.header:
        return rows()

    header = list(head[0].values)
    wanted = [name for name in dict.fromkeys((fields.id, fields.title, fields.text)) if name]

    def singly(block: bytes, line: int) -> Iterator[Row | BadRow]:
        text = io.StringIO(block.decode(), newline="" if quoted else "\n")
        for record in _records(source, text, delimiter, quoted):
            found = record if isinstance(record, BadRow) else _row(record, header, delimiter)
            yield found._replace(line=line - 1 + (found.line or 0))

    def parse(block: bytes, ends: NDArray[np.int64]) -> dict[str, pa.StringArray] | None:
        if block.startswith(codecs.BOM_UTF8):  # which Arrow would leave out
            return None

        try:
            table = arrow.read_csv(
                pa.BufferReader(block),
                read_options=arrow.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=header),
                parse_options=arrow.ParseOptions(
                    delimiter=delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted
                ),
                convert_options=arrow.ConvertOptions(
                    include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid:
            return None

        if table.num_rows != len(ends):
            return None

        columns = {name: texts_of(table.column(name)) for name in wanted}
        return {name: texts for name, texts in columns.items() if texts is not None}

    ends_of = partial(_ends_of_records, delimiter, quoted)
    return in_columns(source, Layout(ends_of, parse, singly, int(options.header)), rows)


def _ends_of_records(delimiter: str, quoted: bool, block: bytes, ends: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Where each record of a block ends; None where ``csv`` would see other cells than Arrow, or a fault.

    That is a line that ends with a lone carriage return, and a quotation mark that neither begins nor ends a cell and
    is not written twice.
    """
    data = np.frombuffer(block, np.uint8)
    quotes = ends[:0]
    if quoted and b'"' in block:
        quotes = np.flatnonzero(data == ord('"'))
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    cut = int(ends[-1]) if len(ends) else 0

    if b"\r" in block:
        returns = np.flatnonzero(data[:cut] == ord("\r"))
        if not (data[returns + 1] == ord("\n")).all():
            return None

    quotes = quotes[quotes < cut]
    if len(quotes):
        edge = np.isin(np.arange(256), [ord(delimiter), ord("\n"), ord("\r")])
        opening, closing = quotes[::2], quotes[1::2]
        # The second mark of a pair that stands for one opens again, right behind the one that closed.
        again = opening[1:] == closing[:-1] + 1
        begins = (opening == 0) | edge[data[opening - 1]] | np.concatenate(([False], again))
        closes = edge[data[closing + 1]] | np.append(again, False)
        if not begins.all() or not closes.all():
            return None

    return ends


def _header(source: Source, cells: list[str], options: ReadOptions) -> list[str]:
    """Column names. Without a header row they are the roles that the count tells, else ``1, 2, 3 …``."""
    if not options.header:
        chosen = {options.text_field, options.id_field, options.title_field} - {None}
        roles = {1: ["text"], 2: ["id", "text"], 3: ["id", "title", "text"]}.get(len(cells), [])
        return roles if roles and chosen <= set(roles) else list(map(str, range(1, len(cells) + 1)))

    names = list(map(str.strip, cells))

    repeated = sorted(name for name, times in Counter(names).items() if name and times > 1)
    if repeated:
        raise InputError(
            f"The header names {listed(repeated)} more than once.",
            hint="Give each column a name of its own.",
            file=source.name,
            line=1,
        )

    return [name or f"column {i}" for i, name in enumerate(names, start=1)]


def _plain(text: io.TextIOBase, delimiter: str) -> Iterator[Cells | BadRow]:
    for number, line in numbered_lines(text):
        if line is None:
            yield BadRow(number, "too long", f"the line is longer than {MAX_LINE_CHARACTERS:,} characters")
        elif line.strip("\r\n"):
            yield number, line.rstrip("\r\n").split(delimiter)


def _quoted(source: Source, text: io.TextIOBase, delimiter: str) -> Iterator[Cells | BadRow]:
    """Records that may span lines. A fault in the quoting costs its record; a quote that never closes, the rest."""
    csv.field_size_limit(MAX_LINE_CHARACTERS)
    last, size = "", 0

    def lines() -> Iterator[str]:
        nonlocal last, size

        for number, line in numbered_lines(text):
            size += len(line or "")
            if line is None or size > 2 * MAX_LINE_CHARACTERS:  # a cell that is too long costs its row alone
                raise InputError(
                    f"The row is longer than {MAX_LINE_CHARACTERS:,} characters.",
                    hint="This is hardly a CSV file; if it is, split the text of that row.",
                    file=source.name,
                    line=number,
                )

            last = line
            yield line

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    while True:
        begins, size = reader.line_num + 1, 0

        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield _quoting_fault(error, begins, reader.line_num, last)
            continue

        if cells:
            yield begins, cells


def _quoting_fault(error: csv.Error, begins: int, ends: int, last: str) -> BadRow:
    problem = str(error)
    lost = f"; lines {begins} to {ends} were lost" if ends > begins else ""
    if "end of data" in problem or "field larger" in problem:
        reason = f"a quotation mark that opens here is never closed{lost}"
    else:
        reason = f"a quotation mark stands in the middle of a cell on line {ends} (write it twice){lost}"
    return BadRow(begins, "broken quoting", reason, excerpt(last))


def parses(text: str, delimiter: str, quoted: bool) -> list[list[str]] | None:
    """The records of a sample, blank ones left out; None where its quoting is broken.

    The last record is left out too if it may be cut off by the sample's end.
    """
    if not quoted:
        return [line.rstrip("\r").split(delimiter) for line in text.split("\n") if line.strip("\r")]
    csv.field_size_limit(MAX_LINE_CHARACTERS)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    records: list[list[str]] = []
    try:
        records.extend(cells for cells in reader if cells)
    except csv.Error as error:
        if "end of data" not in str(error) or len(text) < SAMPLE_CHARACTERS // 2:
            return None
    return records


def find_delimiter(text: str, options: ReadOptions) -> str:
    """The delimiter under which the header shows most of the wanted columns and the rows are equally wide.

    Compared in this order: wanted names in the header, share of rows as wide as the header, number of columns. A
    comma where nothing speaks for another.
    """
    wanted = set(itertools.chain.from_iterable(GUESSES.values()))
    wanted.update(map(str.lower, filter(None, (options.id_field, options.title_field, options.text_field))))
    best, best_score = ",", (0, 0.0, 1)
    for delimiter in ",;\t|":
        records = parses(text, delimiter, True) or parses(text, delimiter, False) or []
        if not records or len(records[0]) < 2:
            continue

        width = len(records[0])
        header = {cell.strip().strip('"').lower() for cell in records[0]}
        n_wanted = len(wanted & header) * options.header
        even = sum(len(record) == width for record in records) / len(records)

        score = (n_wanted, round(even, 2), width)
        if score > best_score:
            best, best_score = delimiter, score

    return best


def shows_quoting(text: str) -> bool:
    """Return True if quotation marks in the first rows wrap whole cells, as spreadsheets write them, in every row."""
    if '"' not in text:
        return False
    records = parses(text, "\t", True) or []
    return len(set(map(len, records))) == 1 and records != parses(text, "\t", False)


def _of_csv(source: Source, options: ReadOptions) -> tuple[str, bool]:
    return find_delimiter(sample(source, options), options), True


def _of_tsv(source: Source, options: ReadOptions) -> tuple[str, bool]:
    # Passages that merely begin with a quotation mark are common: quoting counts where the first rows show it.
    return "\t", shows_quoting(sample(source, options))


CSV = RowFormat(
    "csv", "CSV", "CSV with a header row", (".csv",), partial(table_rows, _of_csv), partial(table_stream, _of_csv),
    order=20,
)  # fmt: skip
TSV = RowFormat(
    "tsv", "TSV", "TSV with a header row", (".tsv", ".tab"), partial(table_rows, _of_tsv),
    partial(table_stream, _of_tsv), order=30,
)  # fmt: skip
