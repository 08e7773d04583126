"""MIRACL: topics and judgments in one repository, the passages of each language in another.

::

    miracl-v1.0-<lang>/topics/topics.miracl-v1.0-<lang>-dev.tsv    query id, tab, text; no header
    miracl-v1.0-<lang>/qrels/qrels.miracl-v1.0-<lang>-dev.tsv      query id, Q0, passage id, grade
    miracl-corpus-v1.0-<lang>/docs-*.jsonl.gz                      docid (article#passage), title, text
"""

from __future__ import annotations

from collections.abc import Iterator

from cdp.base.records import Document, Qrel
from cdp.benchmarks.entry import Entry
from cdp.benchmarks.schemas.beir import grade
from cdp.benchmarks.schemas.contents import Contents, Files, Part, Schema, SourceQuery
from cdp.benchmarks.schemas.records import columns, rows_of, text_of


def parts(entry: Entry) -> list[Part]:
    """Topics, judgments and passages of the entry's language."""
    version = f"miracl-v1.0-{entry.task}"
    return [
        Part("topics", entry.repos[0], (f"{version}/topics/topics.{version}-{entry.split}.tsv",)),
        Part("qrels", entry.repos[0], (f"{version}/qrels/qrels.{version}-{entry.split}.tsv",)),
        Part("corpus", entry.repos[1], (f"miracl-corpus-v1.0-{entry.task}/docs-*.jsonl.gz",)),
    ]


def read(entry: Entry, files: Files) -> Contents:
    """Passages with their article's title, topics as queries."""

    def documents() -> Iterator[Document]:
        for row in rows_of(files["corpus"]):
            yield Document(
                text_of(row, "docid", file="corpus"),
                text_of(row, "text", file="corpus"),
                text_of(row, "title", required=False),
            )

    def queries() -> Iterator[SourceQuery]:
        for path in files["topics"]:
            for query, text in columns(path, 2):
                yield SourceQuery(query, text)

    def judgments() -> Iterator[Qrel]:
        for path in files["qrels"]:
            for query, _, document, score in columns(path, 4):
                yield Qrel(query, document, grade(score, path))

    return Contents(documents, queries, judgments)


SCHEMA = Schema(
    "miracl", "MIRACL", "Topics and judgments in one repository, the passages of each language in another.", parts, read
)
