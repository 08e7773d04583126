"""BRIGHT: one file of documents and one of examples per task, in the configurations ``documents`` and ``examples``.

::

    documents/<task>-*.parquet   id, content
    examples/<task>-*.parquet    id, query, excluded_ids, gold_ids (and gold_ids_long, which belong to long_documents)

``excluded_ids`` of ["N/A"] means none. Documents have no titles. Every gold document is relevant with grade 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdp.base.records import Document, Qrel
from cdp.benchmarks.entry import Entry
from cdp.benchmarks.schemas.contents import Contents, Files, Part, Schema, SourceQuery
from cdp.benchmarks.schemas.records import list_of, rows_of, text_of

NONE = "N/A"


def parts(entry: Entry) -> list[Part]:
    """The task's documents and examples."""
    return [
        Part(role, entry.repos[0], tuple(f"{role}/{entry.task}{rest}" for rest in ("-*.parquet", ".parquet", ".jsonl")))
        for role in ("documents", "examples")
    ]


def read(entry: Entry, files: Files) -> Contents:
    """The task's documents; its examples as queries and judgments."""

    def documents() -> Iterator[Document]:
        for row in rows_of(files["documents"]):
            yield Document(text_of(row, "id", file="documents"), text_of(row, "content", file="documents"))

    def queries() -> Iterator[SourceQuery]:
        for row in rows_of(files["examples"]):
            excluded = tuple(str(d) for d in list_of(row, "excluded_ids") if str(d) != NONE)
            yield SourceQuery(text_of(row, "id", file="examples"), text_of(row, "query", file="examples"), excluded)

    def judgments() -> Iterator[Qrel]:
        for row in rows_of(files["examples"]):
            query = text_of(row, "id", file="examples")
            for document in list_of(row, "gold_ids"):
                if str(document) != NONE:
                    yield Qrel(query, str(document), 1)

    return Contents(documents, queries, judgments)


SCHEMA = Schema("bright", "BRIGHT", "A file of documents and one of examples per task.", parts, read)
