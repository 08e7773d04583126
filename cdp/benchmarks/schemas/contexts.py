"""Questions that carry the one passage they were written for: NovelHopQA.

::

    any file or folder called hop_1 … hop_4 (csv, json, jsonl, Parquet)      book, context, question, answer

The passage is the document to find; equal passages are one document. Ids are ``<book>#<n>``, so that a passage of the
right book can be told from one of another book. The question's hops are the first part of its id: ``hop_2-17``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from cdp.base.records import Document, Qrel
from cdp.base.workspace import slug
from cdp.benchmarks.entry import Entry
from cdp.benchmarks.schemas.contents import Contents, Files, Part, Schema, SourceQuery
from cdp.benchmarks.schemas.records import rows, text_of

HOPS = ("hop_1", "hop_2", "hop_3", "hop_4")
ENDINGS = ("parquet", "jsonl", "json", "csv")


def parts(entry: Entry) -> list[Part]:
    """One or more files for each number of hops."""
    return [
        Part(hop, entry.repos[0], tuple(f"**/{hop}{rest}.{ending}" for rest in ("*", "/*") for ending in ENDINGS))
        for hop in HOPS
    ]


def read(entry: Entry, files: Files) -> Contents:
    """Passages as documents, one judgment per question."""

    def questions() -> Iterator[tuple[str, str, bool, str, str]]:
        """(query id, question, whether its passage is new, document id, passage)."""
        id_of: dict[bytes, str] = {}
        count: dict[str, int] = {}
        for hop in HOPS:
            number = 0
            for path in files[hop]:
                for row in rows(path):
                    number += 1
                    passage = text_of(row, "context", file=path)
                    key = hashlib.blake2b(passage.encode("utf-8", "surrogatepass"), digest_size=16).digest()
                    first = key not in id_of
                    if first:
                        book = slug(_title(row.get("book"), path), fallback="book")
                        count[book] = count.get(book, 0) + 1
                        id_of[key] = f"{book}#{count[book]}"
                    yield f"{hop}-{number}", text_of(row, "question", file=path), first, id_of[key], passage

    def documents() -> Iterator[Document]:
        for _, _, first, identifier, passage in questions():
            if first:
                yield Document(identifier, passage)

    def queries() -> Iterator[SourceQuery]:
        for query, question, *_ in questions():
            yield SourceQuery(query, question)

    def judgments() -> Iterator[Qrel]:
        for query, _, _, document, _ in questions():
            yield Qrel(query, document, 1)

    return Contents(documents, queries, judgments)


def _title(book: object, path: Path) -> str:
    return str(book) if book else re.sub(r"[^\w]+", " ", path.stem)


SCHEMA = Schema(
    "contexts",
    "Questions with their passage",
    "Questions that carry the one passage they were written for (NovelHopQA).",
    parts,
    read,
)
