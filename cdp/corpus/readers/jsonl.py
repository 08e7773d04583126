"""JSON Lines, or a JSON array of objects; in BEIR's fields ``_id, title, text`` or others. ``queries`` come along."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cdp.base.errors import InputError
from cdp.corpus.checks import excerpt, type_name
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers import BadRow, Row, RowFormat
from cdp.corpus.sources import Source, numbered_lines, open_text

# An array is held in memory, with about ten times its size.
MOST_ARRAY_CHARACTERS = 300_000_000


def json_rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """Yield a row per line, blank ones skipped; of an array one per entry, numbered from 1."""
    with open_text(source, options.encoding) as text:
        is_array = text.read(4096).lstrip().startswith("[")
    with open_text(source, options.encoding) as text:
        if is_array:
            array = _array(text.read(MOST_ARRAY_CHARACTERS + 1), source)
            yield from (_row(number, value) for number, value in enumerate(array, start=1))
            return
        for number, line in numbered_lines(source, text):
            if line is None:
                yield BadRow(number, "too long", f"the line is longer than {MAX_LINE_CHARACTERS:,} characters")
            elif line.strip():
                yield _row_of_line(number, line)


def _array(text: str, source: Source) -> list[Any]:
    """The entries of an array. InputError where it is too large or breaks off: then nothing of it is taken."""
    line, hint = None, "Is the file whole? Of JSON Lines, one object per line, only the broken line would be lost."
    if len(text) > MOST_ARRAY_CHARACTERS:
        raise InputError("The JSON array is too large.", hint="Save it as JSON Lines.", file=source.name)
    try:
        values: list[Any] = json.loads(text)
        return values
    except json.JSONDecodeError as error:
        problem, line = error.msg.removesuffix(" at"), error.lineno
    except RecursionError:
        problem = "the JSON is nested too deeply"
    except ValueError as error:
        problem = str(error).split(";")[0]
    raise InputError(f"The JSON array cannot be read: {problem}.", hint=hint, file=source.name, line=line)


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
    "JSON Lines, one object per line (BEIR), or a JSON array of at most 300 million characters",
    (".jsonl", ".ndjson", ".json"),
    json_rows,
    order=10,
)
