"""The objects of a JSON file: one per line (JSON Lines), or all in one array. Streamed, whatever the file's size."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from cdp.base.errors import InputError
from cdp.corpus.options import MAX_LINE_CHARACTERS
from cdp.corpus.sources import BLOCK, Source, numbered_lines, open_text

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
EXCERPT = 300
"""Characters of an array's value that are kept to show it."""


class JsonValue(NamedTuple):
    """One value with the line where it begins. ``text`` is its source; ``problem`` says why there is no ``value``."""

    line: int
    value: Any = None
    text: str = ""
    problem: str = ""


def json_values(source: Source, encoding: str) -> Iterator[JsonValue]:
    """The values in a file's order; blank lines are skipped, and each line that is not JSON has its ``problem``."""
    with open_text(source, encoding) as text:
        if is_array(text):
            yield from array_values(text, source.name)
            return
        for number, line in numbered_lines(text):
            if line is None or line.strip():
                yield too_long(number) if line is None else line_value(number, line)


def is_array(text: io.TextIOWrapper) -> bool:
    """Whether a file of which nothing is read yet begins as an array does."""
    return cast(io.BufferedReader, text.buffer).peek(1).lstrip().startswith(b"[")


def array_values(text: io.TextIOWrapper, name: str) -> Iterator[JsonValue]:
    """The entries of an array. One that breaks off or is malformed raises InputError where it does: nothing after it
    can be told apart."""
    return _Array(text, name).values()


def line_value(number: int, line: str) -> JsonValue:
    """The value on a line, or why it is not JSON."""
    try:
        return JsonValue(number, json.loads(line.rstrip("\r\n")), line)
    except json.JSONDecodeError as error:
        return JsonValue(number, None, line, f"{error.msg.removesuffix(' at')} at column {error.colno}")
    except RecursionError:
        return JsonValue(number, None, line, "the JSON is nested too deeply")
    except ValueError as error:
        return JsonValue(number, None, line, str(error).split(";")[0])


def too_long(number: int) -> JsonValue:
    """What stands for a line that was not read."""
    return JsonValue(number, problem=f"the line is longer than {MAX_LINE_CHARACTERS:,} characters")


class _Array:
    """Takes one value after another out of an array. In memory is the present one, and at most as much again."""

    def __init__(self, text: io.TextIOWrapper, name: str) -> None:
        self._text, self._name = text, name
        self._buffer = ""
        self._at = 0
        self._line = 1

    def values(self) -> Iterator[JsonValue]:
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

    def _value(self) -> JsonValue:
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
        whole = JsonValue(self._line, value, self._buffer[self._at : min(end, self._at + EXCERPT)])
        self._move(end)
        return whole

    def _broken(self, problem: str, line: int | None = None) -> InputError:
        return InputError(
            f"The JSON array cannot be read from here on: {problem}.",
            hint="Is the file whole? Of JSON Lines, one object per line, only the broken line would be lost.",
            file=self._name,
            line=line or self._line,
        )
