"""JSON Lines, or a JSON array of objects; in BEIR's fields ``_id, title, text`` or others. ``queries`` come along."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdp.base.errors import InputError
from cdp.corpus.checks import excerpt, type_name
from cdp.corpus.columns import CHARACTERS, LINES, ColumnReader, Columns, Lines
from cdp.corpus.json_objects import JsonValue, array_values, is_array, line_value, too_long
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers.base import BadRow, Row, RowFormat, RowsByFields
from cdp.corpus.sources import Source, numbered_lines, open_text

Numbered = Iterator[tuple[int, str | None]]


class JsonRows(RowsByFields):
    """A row per line, or per entry of the array. Lines of whole documents come as columns."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.fields = None
        self._rows = self._read(source, options)

    def __next__(self) -> Row | BadRow | Columns:
        return next(self._rows)

    def _read(self, source: Source, options: ReadOptions) -> Iterator[Row | BadRow | Columns]:
        with open_text(source, options.encoding) as text:
            if is_array(text):
                yield from map(_row, array_values(text, source.name))
                return
            lines: Numbered = numbered_lines(text)
            for number, line in lines:
                yield from _rows([(number, line)])
                if self.fields is not None:
                    break
            if self.fields is not None:
                yield from _by_block(lines, ColumnReader(self.fields))


def _by_block(lines: Numbered, reader: ColumnReader) -> Iterator[Row | BadRow | Columns]:
    while not reader.hopeless:
        block, end = _next_block(lines)
        for part in reader.take(block):
            yield from [part] if isinstance(part, Columns) else _rows(part)
        if isinstance(end, InputError):
            raise end
        if isinstance(end, int):
            yield _row(too_long(end))
        elif end == "end":
            return
    yield from _rows(lines)


def _next_block(lines: Numbered) -> tuple[Lines, InputError | int | str]:
    """Some lines and what stands behind them: more, a line too long with its number, a fault, or the end. What came
    before a fault counts."""
    block: Lines = []
    size = 0
    try:
        for number, line in lines:
            if line is None:
                return block, number
            block.append((number, line))
            size += len(line)
            if len(block) >= LINES or size >= CHARACTERS:
                return block, "more"
    except InputError as error:
        return block, error
    return block, "end"


def _rows(lines: Iterable[tuple[int, str | None]] | Lines) -> Iterator[Row | BadRow]:
    for number, line in lines:
        if line is None or line.strip():
            yield _row(too_long(number) if line is None else line_value(number, line))


def _row(value: JsonValue) -> Row | BadRow:
    if value.problem:
        return BadRow(value.line, "broken JSON" if value.text else "too long", value.problem, excerpt(value.text))
    if isinstance(value.value, dict):
        return Row(value.line, value.value)
    what = "text" if isinstance(value.value, str) else type_name(value.value)
    return BadRow(value.line, "not an object", f"the line is {what}, not a JSON object", excerpt(value.text))


FORMAT = RowFormat(
    "jsonl",
    "JSON Lines",
    "JSON Lines, one object per line (BEIR), or a JSON array",
    (".jsonl", ".ndjson", ".json"),
    JsonRows,
    order=10,
)
