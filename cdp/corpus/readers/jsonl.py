"""JSON Lines, or a JSON array of objects; in BEIR's fields ``_id, title, text`` or others. ``queries`` come along."""

from __future__ import annotations

from collections.abc import Iterator

from cdp.corpus.checks import type_name
from cdp.corpus.json_objects import json_values
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers.base import BadRow, Row, RowFormat
from cdp.corpus.rejections import excerpt
from cdp.corpus.sources import Source


def rows(source: Source, options: ReadOptions) -> Iterator[Row | BadRow]:
    """A row per line, or per entry of the array."""
    for line, value, text, problem in json_values(source, options.encoding):
        if problem:
            yield BadRow(line, "broken JSON" if text else "too long", problem, excerpt(text))
        elif isinstance(value, dict):
            yield Row(line, value)
        else:
            what = "text" if isinstance(value, str) else type_name(value)
            yield BadRow(line, "not an object", f"the line is {what}, not a JSON object", excerpt(text))


FORMAT = RowFormat(
    "jsonl",
    "JSON Lines",
    "JSON Lines, one object per line (BEIR), or a JSON array",
    (".jsonl", ".ndjson", ".json"),
    rows,
    order=10,
)
