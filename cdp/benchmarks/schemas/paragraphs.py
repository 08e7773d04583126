"""Multi-hop questions that carry their paragraphs: 2WikiMultihopQA (as HotpotQA writes them) and MuSiQue.

::

    2WikiMultihopQA  dev.parquet or dev.json     _id or id, question, context, supporting_facts
        context is [[title, [sentences]]] or {title: […], sentences: [[…]]}, supporting_facts [[title, sentence]] or
        {title: […], sent_id: […]}; either may be written as JSON in a text
    MuSiQue          musique_ans_v1.0_dev.jsonl  id, question, paragraphs of title, paragraph_text, is_supporting

The corpus is made of all paragraphs; equal ones (title and text) are one document. Their ids ``p1``, ``p2`` … count
distinct paragraphs in the order of the file, so they are the same for the same file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from cdp.base.errors import InputError
from cdp.base.records import Document, Qrel
from cdp.benchmarks.entry import Entry
from cdp.benchmarks.schemas.contents import Contents, Files, Part, Schema, SourceQuery
from cdp.benchmarks.schemas.records import HINT, Row, list_of, rows_of, text_of
from cdp.corpus.rejections import excerpt


class Paragraph(NamedTuple):
    """One paragraph of a question, and whether it supports the answer."""

    title: str
    text: str
    relevant: bool


def parts(entry: Entry) -> list[Part]:
    """One file with the questions of the entry's split."""
    split = entry.split
    names = (f"musique_ans_v1.0_{split}.jsonl",) if entry.name == "musique" else ()
    patterns = (*names, f"{split}.parquet", f"{split}.jsonl", f"{split}.json", "data/validation-*.parquet")
    return [Part("questions", entry.repos[0], patterns)]


def read(entry: Entry, files: Files) -> Contents:
    """Distinct paragraphs as documents, questions as queries, supporting paragraphs as judgments."""

    def numbered() -> Iterator[tuple[str, str, list[tuple[bool, str, Paragraph]]]]:
        """(query id, question, its paragraphs as (first of its kind, document id, paragraph))."""
        id_of: dict[bytes, str] = {}
        for row in rows_of(files["questions"]):
            identified = []
            for paragraph in paragraphs_of(row):
                key = hashlib.blake2b(
                    f"{paragraph.title}\0{paragraph.text}".encode("utf-8", "surrogatepass"), digest_size=16
                ).digest()
                first = key not in id_of
                identified.append((first, id_of.setdefault(key, f"p{len(id_of) + 1}"), paragraph))
            query = text_of(row, "_id", "id", file="questions")
            yield query, text_of(row, "question", file="questions"), identified

    def documents() -> Iterator[Document]:
        for _, _, identified in numbered():
            for first, identifier, paragraph in identified:
                if first:
                    yield Document(identifier, paragraph.text, paragraph.title)

    def queries() -> Iterator[SourceQuery]:
        for query, question, _ in numbered():
            yield SourceQuery(query, question)

    def judgments() -> Iterator[Qrel]:
        for query, _, identified in numbered():
            for document in dict.fromkeys(identifier for _, identifier, paragraph in identified if paragraph.relevant):
                yield Qrel(query, document, 1)

    return Contents(documents, queries, judgments)


def paragraphs_of(row: Row) -> list[Paragraph]:
    """The paragraphs of one question, in either way of writing them."""
    if "paragraphs" in row:
        return [
            Paragraph(text_of(p, "title"), text_of(p, "paragraph_text"), bool(p.get("is_supporting")))
            for p in map(_object, list_of(row, "paragraphs"))
        ]
    supporting = {title for title, _ in _pairs(row.get("supporting_facts"), "sent_id")}
    return [
        Paragraph(title, " ".join(str(s).strip() for s in _list(sentences)), title in supporting)
        for title, sentences in _pairs(row.get("context"), "sentences")
    ]


def _pairs(value: Any, second: str) -> list[tuple[str, Any]]:
    """[[title, x]] or {title: […], second: […]}, possibly as JSON, as pairs."""
    try:
        if isinstance(value, str):
            value = json.loads(value)
        if isinstance(value, dict):
            return [(str(title), x) for title, x in zip(value["title"], value[second], strict=True)]
        return [(str(title), x) for title, x in value or []]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"A question's paragraphs are not written as titles with their {second}: {excerpt(value)!r}.", hint=HINT
        ) from error


def _object(value: Any) -> Row:
    if not isinstance(value, dict):
        raise InputError(f"A question's paragraph is no object: {excerpt(value)!r}.", hint=HINT)
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"A paragraph's sentences are no list: {excerpt(value)!r}.", hint=HINT)
    return value


SCHEMA = Schema(
    "paragraphs",
    "Questions with their paragraphs",
    "Multi-hop questions that carry their paragraphs (2WikiMultihopQA, MuSiQue).",
    parts,
    read,
)
