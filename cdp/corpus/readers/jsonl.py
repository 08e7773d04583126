"""JSON Lines, a JSON array of objects, or objects over several lines; in BEIR's fields ``_id, title, text``
or others. ``queries`` come along."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any

from cdp.base.errors import InputError
from cdp.corpus.checks import excerpt, type_name
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import BadRow, Row, RowFormat
from cdp.corpus.sources import BLOCK, ROW_BYTES, Source, numbered_lines, open_text

# A line that is no object: one is written over several lines.
_INDENTED = re.compile(r"\{[ \t\r]*\n")
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def json_rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """Yield a row per line, blank ones skipped; of an array one per entry, numbered from 1; of objects that are written
    over several lines one per object, numbered by its first line."""
    with open_text(source, options.encoding) as text:
        head = text.read(4096).lstrip()
    is_array = head.startswith("[")
    with open_text(source, options.encoding) as text:
        if is_array:
            for number, value in enumerate(_entries(source, text), start=1):
                yield _row(number, value)
            return
        if _INDENTED.match(head):
            yield from _objects(source, text)
            return
        for number, line in numbered_lines(text):
            if line is None:
                yield BadRow(number, "too long", f"the line is longer than {MAX_LINE_CHARACTERS:,} characters")
            elif line.strip():
                yield _row_of_line(number, line)


def _objects(source: Source, text: io.TextIOWrapper) -> Iterator[Row | BadRow]:
    """The objects of a file, each over several lines. Where one is broken the next begins at a line's ``{``."""
    values = _Array(text)
    while values.peek():
        begins = values.line
        try:
            yield _row(begins, values.value())
            source.spend(ROW_BYTES)
            continue
        except json.JSONDecodeError as error:
            problem = f"{error.msg.removesuffix(' at')}, in the object that begins here"
        except RecursionError:
            problem = "the JSON is nested too deeply"
        except ValueError as error:
            problem = str(error).split(";")[0]
        yield BadRow(begins, "broken JSON", problem, excerpt(values.buffer[values.at : values.at + 1000]))
        if not values.skip():
            return


def _entries(source: Source, text: io.TextIOWrapper) -> Iterator[Any]:
    """The entries of an array, one after the other. InputError where one is too long, and where it breaks off."""
    array = _Array(text)
    try:
        array.past("[")
        more = array.peek() != "]"
        while more:
            yield array.value()
            source.spend(ROW_BYTES)
            more = array.peek() != "]"
            if more:
                array.past(",")
        array.past("]")
        if array.peek():
            raise json.JSONDecodeError("Extra data", array.buffer, array.at)
        return
    except json.JSONDecodeError as error:
        problem, line = error.msg.removesuffix(" at"), array.lines + error.lineno
    except RecursionError:
        problem, line = "the JSON is nested too deeply", None
    except ValueError as error:
        problem, line = str(error).split(";")[0], None
    hint = "Is the file whole? Of JSON Lines, one object per line, only the broken line would be lost."
    raise InputError(f"The JSON array cannot be read: {problem}.", hint=hint, file=source.name, line=line)


class _Array:
    """What is read of an array: ``buffer`` from ``at``, behind so many ``lines``. Memory: twice the longest entry."""

    def __init__(self, text: io.TextIOWrapper) -> None:
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


def _row(line: int, value: Any, text: str = "") -> Row | BadRow:
    if isinstance(value, dict):
        return Row(line, value)
    what = "text" if isinstance(value, str) else type_name(value)
    return BadRow(line, "not an object", f"the line is {what}, not a JSON object", excerpt(text or json.dumps(value)))


FORMAT = RowFormat(
    "jsonl",
    "JSON Lines",
    "JSON Lines, one object per line (BEIR), a JSON array of objects, or objects over several lines",
    (".jsonl", ".ndjson", ".json"),
    json_rows,
    order=10,
)
