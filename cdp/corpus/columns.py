"""JSON Lines by the thousand: rows in which there is nothing to reject or repair, as columns.

Arrow reads a block of lines into columns without a Python object per line. What it takes is what Python's ``json``
takes only if a few things are known of the block, which are checked first; and a row is good only if ``checks`` finds
nothing in it. A block that fails either is halved, and what is left of a few lines goes the way of single rows, which
owns every reason and every repair. So both ways give the same, and tests hold one against the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.json

from cdp.corpus.checks import FieldMap, ids_are_usable, texts_are_usable

LINES = 1024
CHARACTERS = 1 << 20
"""A block ends after so many lines or characters."""

FEW = 64
"""So few lines are not worth a second look together."""

FUTILE = 4
"""After so many blocks in a row of which nothing could be taken together, nothing more is tried."""

_DIGITS = 2048
_DEPTH = 500
_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
"""Python's ``json`` refuses numbers of more than 4,300 digits and some thousand levels; Arrow takes both."""

_INF = re.compile(rb"Inf\s*[,}\]]")
"""A number to Arrow and none to Python, which knows ``Infinity`` alone."""


@dataclass(frozen=True)
class Columns:
    """Checked rows on consecutive lines, from line ``first``."""

    first: int
    ids: list[str]
    titles: list[str]
    texts: list[str]

    def __len__(self) -> int:
        return len(self.ids)


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
