"""CSV and TSV: delimiters, a header row, quotes, cells that hold line breaks.

TSV as MS MARCO and most IR collections have it; CSV with commas, semicolons, tabs or bars.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator

from cdp.base.errors import InputError
from cdp.base.text import counted
from cdp.corpus.checks import GUESSES, excerpt, listed
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import BadRow, Row, RowFormat
from cdp.corpus.sources import Source, numbered_lines, open_text

SAMPLE_CHARACTERS = 1 << 18
Cells = tuple[int, list[str]]


def sample(source: Source, options: ReadOptions) -> str:
    """The whole lines among the first 262,144 characters, from which delimiter and quoting are detected."""
    with open_text(source, options.encoding, newline="") as text:
        head = text.read(SAMPLE_CHARACTERS)
    if len(head) < SAMPLE_CHARACTERS:
        return head
    return head[: head.rfind("\n") + 1] or head


def table_rows(source: Source, options: ReadOptions, delimiter: str, quoted: bool) -> Iterator[Row | BadRow]:
    """The rows of a table as mappings from column to cell; blank lines are skipped."""
    with open_text(source, options.encoding, newline="" if quoted else "\n") as text:
        records = _quoted(source, text, delimiter) if quoted else _plain(text, delimiter)
        header: list[str] | None = None
        for record in records:
            if isinstance(record, BadRow):
                yield record
                continue
            line, cells = record
            if header is None:
                header = _header(source, cells, options)
                if options.header:
                    continue
            if len(cells) != len(header):
                reason = f"{counted(len(cells), 'cell')} where {len(header)} are expected"
                yield BadRow(line, "wrong number of cells", reason, excerpt(delimiter.join(cells)))
                continue
            yield Row(line, dict(zip(header, cells, strict=True)))


def _header(source: Source, cells: list[str], options: ReadOptions) -> list[str]:
    """Column names. Without a header row they are the roles that the count tells, else ``1, 2, 3 …``."""
    if not options.header:
        named = options.text_field or options.id_field or options.title_field
        roles = {1: ["text"], 2: ["id", "text"], 3: ["id", "title", "text"]}.get(len(cells))
        return roles if roles and named is None else [str(i) for i in range(1, len(cells) + 1)]
    names = [cell.strip() for cell in cells]
    repeated = sorted(name for name, times in Counter(names).items() if name and times > 1)
    if repeated:
        raise InputError(
            f"The header names {listed(repeated)} more than once.",
            hint="Give each column a name of its own.",
            file=source.name,
            line=1,
        )
    return [name or f"column {i}" for i, name in enumerate(names, start=1)]


def _plain(text: io.TextIOWrapper, delimiter: str) -> Iterator[Cells | BadRow]:
    for number, line in numbered_lines(text):
        if line is None:
            yield BadRow(number, "too long", f"the line is longer than {MAX_LINE_CHARACTERS:,} characters")
        elif line.strip("\r\n"):
            yield number, line.rstrip("\r\n").split(delimiter)


def _quoted(source: Source, text: io.TextIOWrapper, delimiter: str) -> Iterator[Cells | BadRow]:
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


def csv_rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    yield from table_rows(source, options, find_delimiter(sample(source, options), options), True)


def find_delimiter(text: str, options: ReadOptions) -> str:
    """The delimiter under which the header shows most of the wanted columns and the rows are equally wide.

    Compared in this order: wanted names in the header, share of rows as wide as the header, number of columns. A
    comma where nothing speaks for another.
    """
    wanted = {name for guesses in GUESSES.values() for name in guesses}
    wanted |= {name.lower() for name in (options.id_field, options.title_field, options.text_field) if name}
    best, best_score = ",", (0, 0.0, 1)
    for delimiter in ",;\t|":
        records = parses(text, delimiter, True) or parses(text, delimiter, False) or []
        if not records or len(records[0]) < 2:
            continue
        width = len(records[0])
        n_wanted = len(wanted & {cell.strip().strip('"').lower() for cell in records[0]}) if options.header else 0
        even = sum(len(record) == width for record in records) / len(records)
        score = (n_wanted, round(even, 2), width)
        if score > best_score:
            best, best_score = delimiter, score
    return best


CSV = RowFormat("csv", "CSV", "CSV with a header row", (".csv",), csv_rows, order=20)


def tsv_rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    # Passages that merely begin with a quotation mark are common: quoting counts where the first rows show it.
    yield from table_rows(source, options, "\t", shows_quoting(sample(source, options)))


def shows_quoting(text: str) -> bool:
    """Return True if quotation marks in the first rows wrap whole cells, as spreadsheets write them, in every row."""
    if '"' not in text:
        return False
    records = parses(text, "\t", True)
    if not records or any(len(record) != len(records[0]) for record in records):
        return False
    return records != parses(text, "\t", False)


TSV = RowFormat("tsv", "TSV", "TSV with a header row", (".tsv", ".tab"), tsv_rows, order=30)
