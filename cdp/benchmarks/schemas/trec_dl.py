"""TREC Deep Learning: NIST's judgments, MS MARCO's test queries and passages.

::

    <year>qrels-pass.txt                   query id, Q0, passage id, grade 0 to 3, with spaces between them
    msmarco-test<year>-queries.tsv.gz      query id, tab, text; 200 queries, of which 43 and 54 are judged
    corpus.jsonl.gz of BeIR/msmarco, or MS MARCO's collection.tsv: passage id, tab, text
"""

from __future__ import annotations

from collections.abc import Iterator

from cdp.base.records import Document, Qrel
from cdp.benchmarks.beir_files import read_qrels
from cdp.benchmarks.entry import Entry
from cdp.benchmarks.schemas.contents import Contents, Files, Part, Schema, SourceQuery
from cdp.benchmarks.schemas.records import columns, rows_of, text_of

JUDGMENTS = "https://trec.nist.gov/data/deep/{year}qrels-pass.txt"
QUERIES = "https://msmarco.z22.web.core.windows.net/msmarcoranking/msmarco-test{year}-queries.tsv.gz"


def parts(entry: Entry) -> list[Part]:
    """Judgments and queries at their publishers, passages on the hub."""
    queries = QUERIES.format(year=entry.task)
    name = queries.rpartition("/")[2]
    return [
        Part("qrels", "", (f"{entry.task}qrels-pass.txt",), JUDGMENTS.format(year=entry.task)),
        Part("queries", "", (name, name.removesuffix(".gz")), queries),
        Part("corpus", entry.repos[0], ("corpus.jsonl", "corpus.jsonl.gz", "corpus/*.parquet", "collection.tsv")),
    ]


def read(entry: Entry, files: Files) -> Contents:
    """Passages, queries, and judgments with all their grades, 0 included."""

    def documents() -> Iterator[Document]:
        for path in files["corpus"]:
            if path.name == "collection.tsv":
                for identifier, text in columns(path, 2):
                    yield Document(identifier, text)
                continue
            for row in rows_of([path]):
                title = text_of(row, "title", required=False)
                yield Document(text_of(row, "_id", "id", file=path), text_of(row, "text", file=path), title)

    def queries() -> Iterator[SourceQuery]:
        for path in files["queries"]:
            for query, text in columns(path, 2):
                yield SourceQuery(query, text)

    def judgments() -> Iterator[Qrel]:
        for path in files["qrels"]:
            for query, grades in read_qrels(path).grades.items():
                for document, score in grades.items():
                    yield Qrel(query, document, score)

    return Contents(documents, queries, judgments)


SCHEMA = Schema("trec-dl", "TREC Deep Learning", "NIST's judgments, MS MARCO's test queries and passages.", parts, read)
