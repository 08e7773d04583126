"""Benchmarks that are three tables (``data/benchmarks/layouts.toml``): documents, queries, judgments; lists of ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError
from cdp.base.records import Document, Qrel
from cdp.base.workspace import shipped_table
from cdp.benchmarks.beir_files import read_qrels
from cdp.benchmarks.schemas import Contents, Entry, Part, PartFiles, Schema, SourceQuery
from cdp.benchmarks.schemas.records import HINT, SourceRow, columns, ids_of, rows, text_of
from cdp.corpus.grades import grade_of

LAYOUTS: Mapping[str, Mapping[str, Any]] = shipped_table("benchmarks/layouts")

# Written by BRIGHT in a list that has no document.
NONE = "N/A"


def parts(layout: Mapping[str, Any], entry: Entry) -> list[Part]:
    """Return the files of an entry's three tables."""
    words = {"task": entry.task, "split": entry.split, "published": entry.task or entry.split}
    found = []
    for role, table in layout.items():
        if role in ("title", "help"):
            continue
        if "url" in table:
            url = table["url"].format(**words)
            name = url.rpartition("/")[2]
            found.append(Part(role, "", tuple(dict.fromkeys((name, name.removesuffix(".gz")))), url))
        else:
            patterns = tuple(pattern.format(**words) for pattern in table["files"])
            found.append(Part(role, entry.repos[table.get("repo", 0)], patterns))
    return found


def read(layout: Mapping[str, Any], entry: Entry, files: PartFiles) -> Contents:
    """Return the three tables as records. Lists of documents leave ``N/A`` out."""

    def names(role: str, column: str, *default: str) -> tuple[str, ...]:
        value = layout[role].get(column, default or (column,))
        return (value,) if isinstance(value, str) else tuple(value)

    def table(role: str) -> Iterator[tuple[Path, SourceRow]]:
        header = layout[role].get("header")
        for path in files[role]:
            if header and path.name.removesuffix(".gz").endswith(".tsv"):
                for cells in columns(path, len(header)):
                    if cells[0] not in names(role, "id"):  # a header after all
                        yield path, dict(zip(header, cells, strict=True))
            else:
                for row in rows(path):
                    yield path, row

    def documents() -> Iterator[Document]:
        identifier, text, title = (names("corpus", column) for column in ("id", "text", "title"))
        for path, row in table("corpus"):
            named = text_of(row, *title, required=False) if entry.titles else ""
            yield Document(text_of(row, *identifier, file=path), text_of(row, *text, file=path), named)

    def queries() -> Iterator[SourceQuery]:
        identifier, text, (excluded,) = (names("queries", column) for column in ("id", "text", "excluded"))
        for path, row in table("queries"):
            listed = ids_of(row, excluded, file=path) if excluded in row else []
            left_out = tuple(name for name in listed if name != NONE)
            yield SourceQuery(text_of(row, *identifier, file=path), text_of(row, *text, file=path), left_out)

    def judgments() -> Iterator[Qrel]:
        query, grade = (
            names("qrels", "query", "query-id", "query_id", "qid", "q_id"),
            names("qrels", "grade", "score", "relevance"),
        )
        document = names("qrels", "document", "corpus-id", "corpus_id", "doc_id", "docid")
        for path in files["qrels"]:
            if path.name.endswith((".tsv", ".txt")):
                for name, grades in read_qrels(path).grades.items():
                    yield from (Qrel(name, relevant, score) for relevant, score in grades.items())
                continue

            for row in rows(path):
                if all(isinstance(grades, dict) for grades in row.values()):  # {query: {document: grade}}
                    for name, grades in row.items():
                        yield from (
                            Qrel(name, relevant, _grade(str(score), path)) for relevant, score in grades.items()
                        )
                    continue

                score = _grade(text_of(row, *grade, required=False) or "1", path)
                named = text_of(row, *query, file=path)
                relevant = ids_of(row, *document, file=path)
                yield from (Qrel(named, name, score) for name in relevant if name != NONE)

    return Contents(documents, queries, judgments)


def _grade(text: str, path: Path) -> int:
    grade = grade_of(text)
    if grade is None:
        raise InputError(f"The grade {text!r} is not a whole number.", hint=HINT, file=path)
    return grade


def _schema(name: str) -> Schema:
    layout = LAYOUTS[name]
    return Schema(name, layout["title"], layout["help"], partial(parts, layout), partial(read, layout))


BEIR, BRIGHT, MIRACL, TREC_DL = map(_schema, ("beir", "bright", "miracl", "trec-dl"))
