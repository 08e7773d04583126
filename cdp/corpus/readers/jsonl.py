"""JSON Lines: one object per line, in BEIR's fields ``_id, title, text`` or others; ``queries`` are taken along."""

from __future__ import annotations

import json
from collections.abc import Iterator

from cdp.corpus.checks import type_name
from cdp.corpus.decoding import numbered_lines, open_text
from cdp.corpus.options import MAX_LINE_CHARACTERS, ReadOptions
from cdp.corpus.readers.base import BadRow, Row, RowFormat
from cdp.corpus.rejections import excerpt
from cdp.corpus.sources import Source
from cdp.errors import InputError


def rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """A row per line; blank lines are skipped. InputError for a file that is one JSON array."""
    first = True
    with open_text(source, options.encoding) as text:
        for number, line in numbered_lines(text):
            if line is None:
                yield BadRow(number, "too long", f"the line is longer than {MAX_LINE_CHARACTERS:,} characters")
                continue
            if not line.strip():
                continue
            if first and line.lstrip().startswith("["):
                raise InputError(
                    "It is a JSON array, not JSON Lines.",
                    hint="Save one object per line, for example with: jq -c '.[]' in.json > out.jsonl",
                    file=source.name,
                )
            first = False
            yield _row(number, line)


def _row(number: int, line: str) -> Row | BadRow:
    try:
        value = json.loads(line.rstrip("\r\n"))
    except json.JSONDecodeError as error:
        return BadRow(number, "broken JSON", f"{error.msg.removesuffix(' at')} at column {error.colno}", excerpt(line))
    except RecursionError:
        return BadRow(number, "broken JSON", "the JSON is nested too deeply", excerpt(line))
    except ValueError as error:
        return BadRow(number, "broken JSON", str(error).split(";")[0], excerpt(line))
    if not isinstance(value, dict):
        what = "text" if isinstance(value, str) else type_name(value)
        return BadRow(number, "not an object", f"the line is {what}, not a JSON object", excerpt(line))
    return Row(number, value)


FORMAT = RowFormat("jsonl", "JSON Lines, one object per line (BEIR)", (".jsonl", ".ndjson", ".json"), rows)
