"""JSON Lines, or a JSON array of objects; in BEIR's fields ``_id, title, text`` or others. ``queries`` come along."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, cast

from cdp.base.errors import InputError
from cdp.corpus.checks import excerpt, type_name
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import BadRow, Row, RowFormat
from cdp.corpus.sources import BLOCK, Source, numbered_lines, open_text


def json_rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """Yield a row per line, or per entry of the array. Blank lines are skipped."""
    with open_text(source, options.encoding) as text:
        if cast(io.BufferedReader, text.buffer).peek(1).lstrip().startswith(b"["):
            yield from _Array(text, source.name).rows()
            return
        for number, line in numbered_lines(text):
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
    json_rows,
    order=10,
)


_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
# Characters of an array's value that are kept to show it.
EXCERPT = 300


class _Array:
    """Streams the values of an array; memory holds the present one, and at most as much again.

    An array that breaks off or is malformed raises InputError there.
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
        """Return the next character that is no space, without taking it; "" at the end of the file."""
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
        """Double the buffer; return False at the end of the file."""
        block = self._text.read(max(BLOCK, len(self._buffer) - self._at))
        self._buffer, self._at = self._buffer[self._at :] + block, 0
        return bool(block)

    def _value(self) -> Row | BadRow:
        """Return the value that begins here, whole once something follows it."""
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
