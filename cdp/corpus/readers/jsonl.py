"""JSON Lines, a JSON array of objects, or objects over several lines; in BEIR's fields ``_id, title, text``
or others. ``queries`` come along."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.corpus.checks import excerpt, type_name
from cdp.corpus.columns import Layout, in_columns, in_parts, resolved, texts_of
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import BadRow, Item, Row, RowFormat
from cdp.corpus.sources import BLOCK, ROW_BYTES, Source, encoding_of_head, numbered_lines, open_text

# A line that is no object: one is written over several lines.
_INDENTED = re.compile(r"\{[ \t\r]*\n")
# What Arrow skips and ``json`` refuses: an object in so many others, a number of so many digits.
DEEPEST, MAX_DIGITS = 100, 4300
_LONG_NUMBER = re.compile(rb"[0-9]{4300}")
_CR = 13
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def json_rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """Return a row per line, blank ones skipped; of an array one per entry, numbered from 1; of objects over several
    lines one per object, numbered by its first."""
    with open_text(source, options.encoding) as text:
        read = _reader_of(text)
    return read(open_text(source, options.encoding), source)


Text = AbstractContextManager[io.TextIOBase]


def _reader_of(text: io.TextIOBase) -> Callable[[Text, Source], Iterator[Row | BadRow]]:
    head = text.read(4096).lstrip()
    if head.startswith("["):
        return _entries
    return _objects if _INDENTED.match(head) else _lines


def _lines(opened: Text, _: Source | None = None, first: int = 1) -> Iterator[Row | BadRow]:
    with opened as text:
        for number, line in numbered_lines(text):
            at = first - 1 + number
            if line is None:
                yield BadRow(at, "too long", f"the line is longer than {MAX_LINE_CHARACTERS:,} characters")
                continue
            if not line.strip():
                continue

            try:
                value = json.loads(line.rstrip("\r\n"))
            except (ValueError, RecursionError) as error:
                place = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
                yield BadRow(at, "broken JSON", _problem(error) + place, excerpt(line))
            else:
                yield Row(at, value) if isinstance(value, dict) else _no_object(at, value, line)


def stream(source: Source, options: ReadOptions) -> Iterator[Item]:
    """Return what ``json_rows`` does, lines that Arrow can parse as columns."""
    rows = partial(json_rows, source, options)
    with encoding_of_head(source, options.encoding):
        with open_text(source, options.encoding) as text:
            in_lines = _reader_of(text) is _lines
        head, fields = resolved(source, options, rows) if in_lines else ([], None)

    if fields is None:
        return rows()
    wanted = {name: pa.string() for name in (fields.id, fields.title, fields.text) if name}
    if fields.id and all(type(row.values.get(fields.id)) is int for row in head):
        wanted[fields.id] = pa.int64()
    parse = partial(_parsed, pa.schema(list(wanted.items())))
    singly = lambda block, line: _lines(io.StringIO(block.decode(), newline="\n"), first=line)  # noqa: E731
    return in_columns(source, Layout(lambda _, lines: lines, parse, singly), rows)


def _parsed(schema: pa.Schema, block: bytes, ends: NDArray[np.int64]) -> dict[str, pa.StringArray] | None:
    """The columns of lines that each hold an object; None where one does not, or holds what ``json`` would refuse."""
    import pyarrow.json as pj  # 10 ms, where a command starts that reads nothing

    data = np.frombuffer(block, np.uint8)
    begins = np.concatenate(([0], ends[:-1]))

    last = data[ends - 2]
    if (last == _CR).any():
        last = np.where(last == _CR, data[ends - 3], last)
    # So each line is one object: as many of them as lines, none of which goes on in the next.
    if not (data[begins] == ord("{")).all() or not (last == ord("}")).all():
        return None

    lengths = ends - begins

    n_open = sum(np.count_nonzero(part & 0xDF == ord("[")) for _, part in in_parts(block))  # or {
    if n_open > len(ends) + DEEPEST:
        opened = np.flatnonzero(data & 0xDF == ord("["))
        if np.diff(np.searchsorted(opened, ends), prepend=0).max() > DEEPEST:
            return None

    if lengths.max() > MAX_DIGITS and _LONG_NUMBER.search(block):
        return None

    try:
        table = pj.read_json(
            pa.BufferReader(block),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None

    if table.num_rows != len(ends):
        return None

    columns = {name: texts_of(table.column(name)) for name in schema.names}
    return {name: texts for name, texts in columns.items() if texts is not None}


def _objects(opened: Text, source: Source) -> Iterator[Row | BadRow]:
    """The objects of a file, each over several lines. Where one is broken the next begins at a line's ``{``."""
    with opened as text:
        values = _Array(text)
        while values.peek():
            begins = values.line
            try:
                value = values.value()
                yield Row(begins, value) if isinstance(value, dict) else _no_object(begins, value)
                source.budget.spend(ROW_BYTES * source.packed)
            except (ValueError, RecursionError) as error:
                shown = excerpt(values.buffer[values.at : values.at + 1000])
                yield BadRow(begins, "broken JSON", f"{_problem(error)}, in the object that begins here", shown)
                if not values.skip():
                    return


def _entries(opened: Text, source: Source) -> Iterator[Row | BadRow]:
    """The entries of an array, one after the other. InputError where one is too long, and where it breaks off."""
    with opened as text:
        array, number = _Array(text), 0

        try:
            array.past("[")
            more = array.peek() != "]"
            while more:
                value, number = array.value(), number + 1
                yield Row(number, value) if isinstance(value, dict) else _no_object(number, value)
                source.budget.spend(ROW_BYTES * source.packed)
                more = array.peek() != "]"
                if more:
                    array.past(",")

            array.past("]")

            if array.peek():
                raise json.JSONDecodeError("Extra data", array.buffer, array.at)
        except (ValueError, RecursionError) as error:
            line = array.lines + error.lineno if isinstance(error, json.JSONDecodeError) else None
            hint = "Is the file whole? Of JSON Lines, one object per line, only the broken line would be lost."
            if "Extra data" in str(error):
                hint = "A row for each line is an object with named fields: an array has no names."
            problem = f"The JSON array cannot be read: {_problem(error)}."
            raise InputError(problem, hint=hint, file=source.name, line=line) from None


def _problem(error: ValueError | RecursionError) -> str:
    """What is wrong with JSON, in words."""
    if isinstance(error, RecursionError):
        return "the JSON is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return error.msg.removesuffix(" at")
    return str(error).split(";")[0]


class _Array:
    """What is read of an array: ``buffer`` from ``at``, behind so many ``lines``. Memory: twice the longest entry."""

    def __init__(self, text: io.TextIOBase) -> None:
        self._text = text
        self.buffer, self.at, self.lines, self._ended = "", 0, 0, False
        # Of the buffer: how far line breaks were counted, and how many there were.
        self._counted = self._breaks = 0

    def _more(self) -> None:
        """Read as much again as there is, and forget what is done with."""
        read = self._text.read(max(BLOCK, len(self.buffer) - self.at))
        self.lines += self.buffer.count("\n", 0, self.at)
        self.buffer, self.at, self._ended = self.buffer[self.at :] + read, 0, not read
        self._counted = self._breaks = 0

    @property
    def line(self) -> int:
        """The number, from 1, of the line that is read next."""
        self._breaks += self.buffer.count("\n", self._counted, self.at)
        self._counted = self.at
        return self.lines + self._breaks + 1

    def skip(self) -> bool:
        """Go to the next line that begins with ``{``; False where there is none."""
        while True:
            at = self.buffer.find("\n{", self.at)
            if at >= 0:
                self.at = at + 1
                return True
            if self._ended:
                return False
            self.at = max(self.at, len(self.buffer) - 1)
            self._more()

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            self.at = _SPACE.match(self.buffer, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.buffer) or self._ended:
                return self.buffer[self.at : self.at + 1]
            self._more()

    def past(self, character: str) -> None:
        """Go past a character; JSONDecodeError if it is not the next."""
        if self.peek() != character:
            raise json.JSONDecodeError(f"Expecting {character!r} delimiter", self.buffer, self.at)
        self.at += 1

    def value(self) -> Any:
        """Go past the next value and return it; ValueError where there is none."""
        self.peek()
        fault = ("", 0)
        while True:
            try:
                value, end = _DECODER.raw_decode(self.buffer, self.at)
                if end + 2 < len(self.buffer) or self._ended:  # 1 may be the beginning of 1e+5
                    self.at = end
                    return value
            except json.JSONDecodeError as error:
                before, fault = fault, (error.msg, error.pos - self.at)
                # With more of the text it is still there, and no string that goes on.
                if self._ended or (fault == before and "Unterminated" not in error.msg):
                    raise

            if len(self.buffer) - self.at > MAX_LINE_CHARACTERS:
                raise ValueError(f"an entry is longer than {MAX_LINE_CHARACTERS:,} characters")
            self._more()


def _no_object(line: int, value: Any, text: str = "") -> BadRow:
    what = "text" if isinstance(value, str) else type_name(value)
    return BadRow(line, "not an object", f"the line is {what}, not a JSON object", excerpt(text or json.dumps(value)))


FORMAT = RowFormat(
    "jsonl",
    "JSON Lines",
    "JSON Lines, one object per line (BEIR), a JSON array of objects, or objects over several lines",
    (".jsonl", ".ndjson", ".json"),
    json_rows,
    stream,
    order=10,
)
