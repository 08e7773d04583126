"""Small files that the tests of this room read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.reading import ReadResult

ROWS = [
    {"_id": "a", "title": "Alpha", "text": "The first letter."},
    {"_id": "b", "title": "", "text": "The second letter."},
    {"_id": "c", "title": "Gamma", "text": "The third letter."},
]


def jsonl(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    """A JSONL file; texts among ``rows`` are written as they are."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    data = "".join(f"{line}\n" for line in lines).encode("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def triples(result: ReadResult) -> list[tuple[str, str, str]]:
    return [(d.id, d.title, d.text) for d in result.documents]


def read(path: Path, **options: Any) -> list[tuple[str, str, str]]:
    """(id, title, text) of every document read with these options; nothing may be rejected."""
    with read_documents(path, ReadOptions(**options)) as result:
        assert not result.rejected_counts
        return triples(result)


def reasons(result: ReadResult) -> list[tuple[int | None, str]]:
    return [(r.line, r.kind) for r in result.rejected]


TRIPLES = [(row["_id"], row["title"], row["text"]) for row in ROWS]
