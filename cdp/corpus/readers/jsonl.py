"""JSON Lines, or a JSON array of objects; in BEIR's fields ``_id, title, text`` or others. ``queries`` come along."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pyarrow as pa
import pyarrow.json

from cdp.base.errors import InputError
from cdp.corpus.checks import FieldMap, excerpt, ids_are_usable, texts_are_usable, type_name
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import BadRow, Columns, Row, RowFormat, RowsByFields
from cdp.corpus.sources import BLOCK, Source, numbered_lines, open_text

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
            if cast(io.BufferedReader, text.buffer).peek(1).lstrip().startswith(b"["):
                yield from _Array(text, source.name).rows()
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
            yield from _rows([(end, None)])
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
    """A row per line; blank lines are skipped."""
    for number, line in lines:
        if line is None:
            yield BadRow(number, "too long", f"the line is longer than {MAX_LINE_CHARACTERS:,} characters")
        elif line.strip():
            yield _row_of_line(number, line)


def _row_of_line(number: int, line: str) -> Row | BadRow:
    try:
        return _row(number, json.loads(line.rstrip("\r\n")), line)
    except json.JSONDecodeError as error:
        problem = f"{error.msg.removesuffix(' at')} at column {error.colno}"
    except RecursionError:
        problem = "the JSON is nested too deeply"
    except ValueError as error:
        problem = str(error).split(";")[0]
    return BadRow(number, "broken JSON", problem, excerpt(line))


def _row(line: int, value: Any, text: str) -> Row | BadRow:
    if isinstance(value, dict):
        return Row(line, value)
    what = "text" if isinstance(value, str) else type_name(value)
    return BadRow(line, "not an object", f"the line is {what}, not a JSON object", excerpt(text))


FORMAT = RowFormat(
    "jsonl",
    "JSON Lines",
    "JSON Lines, one object per line (BEIR), or a JSON array",
    (".jsonl", ".ndjson", ".json"),
    JsonRows,
    order=10,
)


_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
# Characters of an array's value that are kept to show it.
EXCERPT = 300


class _Array:
    """Takes one value after another out of an array. In memory is the present one, and at most as much again.

    An array that breaks off or is malformed raises InputError there: nothing after it can be told apart.
    """

    def __init__(self, text: io.TextIOWrapper, name: str) -> None:
        self._text, self._name = text, name
        self._buffer = ""
        self._at = 0
        self._line = 1

    def rows(self) -> Iterator[Row | BadRow]:
        self._next()
        self._move(self._at + 1)
        mark = ","
        if self._next() == "]":
            mark = "]"
            self._move(self._at + 1)
        while mark == ",":
            yield self._value()
            mark = self._next()
            if mark not in ("]", ","):
                raise self._broken("Expecting ',' delimiter")
            self._move(self._at + 1)
        if self._next():
            raise self._broken("there is more after the array's end")

    def _next(self) -> str:
        """The next character that is no space, not yet taken; empty at the end of the file."""
        while True:
            self._move(_SPACE.match(self._buffer, self._at).end())  # type: ignore[union-attr]
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._read():
                return ""

    def _move(self, to: int) -> None:
        self._line += self._buffer.count("\n", self._at, to)
        self._at = to

    def _read(self) -> bool:
        """Read as much again as is at hand; False at the end of the file."""
        block = self._text.read(max(BLOCK, len(self._buffer) - self._at))
        self._buffer, self._at = self._buffer[self._at :] + block, 0
        return bool(block)

    def _value(self) -> Row | BadRow:
        """The value that begins here. It is only known to be whole once something stands behind it."""
        self._next()
        while True:
            problem, line = "Expecting ',' delimiter", self._line
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                problem, end = error.msg.removesuffix(" at"), len(self._buffer)
                line += error.doc.count("\n", self._at, error.pos)
            except RecursionError:
                raise self._broken("the JSON is nested too deeply") from None
            except ValueError as error:
                raise self._broken(str(error).split(";")[0]) from None
            else:
                if end < len(self._buffer):
                    break
            if end - self._at > MAX_LINE_CHARACTERS or not self._read():
                raise self._broken(problem, line)
        whole = _row(self._line, value, self._buffer[self._at : min(end, self._at + EXCERPT)])
        self._move(end)
        return whole

    def _broken(self, problem: str, line: int | None = None) -> InputError:
        return InputError(
            f"The JSON array cannot be read from here on: {problem}.",
            hint="Is the file whole? Of JSON Lines, one object per line, only the broken line would be lost.",
            file=self._name,
            line=line or self._line,
        )


LINES = 1024
# A block ends after so many lines or characters.
CHARACTERS = 1 << 20

# So few lines are not worth a second look together.
FEW = 64

# After so many blocks in a row of which nothing could be taken together, nothing more is tried.
FUTILE = 4

_DIGITS = 2048
_DEPTH = 500
# Python's `json` refuses numbers of more than 4,300 digits and some thousand levels; Arrow takes both.
_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")

# A number to Arrow and none to Python, which knows `Infinity` alone.
_INF = re.compile(rb"Inf\s*[,}\]]")


Lines = list[tuple[int, str]]


class ColumnReader:
    """Takes what it can of blocks of lines, in their order."""

    def __init__(self, fields: FieldMap) -> None:
        self._fields = fields
        self._schema = pa.schema([(name, pa.string()) for name in (fields.id, fields.title, fields.text) if name])
        self._failed = 0
        # A document without an id is numbered by its row, and queries are lists of anything.
        self.hopeless = fields.id is None or fields.queries is not None or len(set(self._schema.names)) < len(
            self._schema
        )  # fmt: skip

    def take(self, lines: Lines) -> Iterator[Columns | Lines]:
        """The parts of a block: columns, or lines that have to be read one by one."""
        taken = 0
        for part in self._parts(lines):
            taken += isinstance(part, Columns)
            yield part
        self._failed = 0 if taken else self._failed + 1
        self.hopeless |= self._failed >= FUTILE

    def _parts(self, lines: Lines) -> Iterator[Columns | Lines]:
        if len(lines) <= FEW:
            yield lines
            return
        columns = self._columns(lines)
        if columns is not None:
            yield columns
            return
        half = len(lines) // 2
        yield from self._parts(lines[:half])
        yield from self._parts(lines[half:])

    def _columns(self, lines: Lines) -> Columns | None:
        data = "".join([line for _, line in lines]).encode("utf-8")
        if not _one_object_per_line(data, len(lines)) or not _known_to_both(data, lines):
            return None
        fields = self._fields
        try:
            table = _parsed(data, self._schema)
            ids, texts = (table.column(name).to_pylist() for name in (fields.id, fields.text))
            titles = table.column(fields.title).to_pylist() if fields.title else [""] * len(ids)
        except (pa.ArrowException, ValueError):  # of another type, or no text at all
            return None
        if len(ids) != len(lines) or not ids_are_usable(ids) or not texts_are_usable(texts):
            return None
        return Columns(lines[0][0], ids, [title or "" for title in titles], texts)


def _parsed(data: bytes, schema: pa.Schema) -> pa.Table:
    return pyarrow.json.read_json(
        pa.BufferReader(data),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _one_object_per_line(data: bytes, n: int) -> bool:
    """A line break stands in no JSON string, and between ``}`` and ``{`` within a value a comma would have to."""
    whole = data.startswith(b"{") and data.endswith((b"}\n", b"}"))
    return whole and data.count(b"}\n{") == n - 1


def _known_to_both(data: bytes, lines: Lines) -> bool:
    """Whether nothing stands here that Arrow takes and Python refuses, or that is stored otherwise than written."""
    if b"\0" in data or (b"\\u" in data and _UNSTORABLE.search(data)):
        return False
    if b"Inf" in data and _INF.search(data):
        return False
    if any(data[at : at + _DIGITS].isdigit() for at in range(0, len(data), _DIGITS)):
        return False
    if data.count(b"[") + data.count(b"{") - len(lines) < _DEPTH:
        return True
    return all(line.count("[") + line.count("{") < _DEPTH for _, line in lines)
