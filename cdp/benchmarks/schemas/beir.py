"""BEIR on the hub: corpus, queries and judgments, as JSON Lines, Parquet or TSV.

::

    corpus.jsonl[.gz]   or corpus/*.parquet      _id, title (may be absent), text
    queries.jsonl[.gz]  or queries/*.parquet     _id, text
    qrels/<split>.tsv   or qrels/<split>-*.parquet, or <split>.tsv in a repository of its own (BeIR/*-qrels)

NanoBEIR is laid out the same way; its only split is called train and its judgments have no grade: every one is
relevant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from cdp.base.errors import InputError
from cdp.base.records import Document, Qrel
from cdp.benchmarks.beir_files import LARGEST_GRADE, read_qrels
from cdp.benchmarks.entry import Entry
from cdp.benchmarks.schemas.contents import Contents, Files, Part, Schema, SourceQuery
from cdp.benchmarks.schemas.records import HINT, rows, rows_of, text_of

NANO = "NanoBEIR"


def parts(entry: Entry) -> list[Part]:
    """Corpus, queries, and the judgments of the entry's split, which its ``task`` names where its source calls it
    otherwise (MS MARCO's dev set is "validation" there)."""
    split = "train" if NANO in entry.groups else entry.task or entry.split
    here = (f"qrels/{split}.tsv", f"qrels/{split}.jsonl", f"qrels/{split}-*.parquet", f"data/{split}-*.parquet")
    alone = (f"{split}.tsv", *here) if len(entry.repos) > 1 else here
    return [
        Part("corpus", entry.repos[0], _either("corpus")),
        Part("queries", entry.repos[0], _either("queries")),
        Part("qrels", entry.repos[-1], alone),
    ]


def _either(name: str) -> tuple[str, ...]:
    return (f"{name}.jsonl", f"{name}.jsonl.gz", f"{name}/*.parquet")


def read(entry: Entry, files: Files) -> Contents:
    """The three kinds of rows as records."""

    def documents() -> Iterator[Document]:
        for row in rows_of(files["corpus"]):
            title = text_of(row, "title", required=False) if entry.titles else ""
            yield Document(text_of(row, "_id", "id", file="corpus"), text_of(row, "text", file="corpus"), title)

    def queries() -> Iterator[SourceQuery]:
        for row in rows_of(files["queries"]):
            yield SourceQuery(text_of(row, "_id", "id", file="queries"), text_of(row, "text", file="queries"))

    def judgments() -> Iterator[Qrel]:
        for path in files["qrels"]:
            yield from _judgments(path)

    return Contents(documents, queries, judgments)


def _judgments(path: Path) -> Iterator[Qrel]:
    if path.name.endswith(".tsv"):
        for query, grades in read_qrels(path).grades.items():
            for document, score in grades.items():
                yield Qrel(query, document, score)
        return
    for row in rows(path):
        yield Qrel(
            text_of(row, "query-id", "query_id", file=path),
            text_of(row, "corpus-id", "corpus_id", file=path),
            grade(text_of(row, "score", required=False) or "1", path),
        )


def grade(text: str, path: Path) -> int:
    """A grade written as a whole number, ``2`` or ``2.0``. InputError for anything else."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number.is_integer() or abs(number) >= LARGEST_GRADE:
        raise InputError(f"The grade {text!r} is not a whole number.", hint=HINT, file=path)
    return int(number)


SCHEMA = Schema("beir", "BEIR", "Corpus, queries and judgments as JSON Lines, Parquet or TSV.", parts, read)
