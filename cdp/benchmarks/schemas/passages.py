"""Multi-hop questions that carry their passages: the corpus is made of all passages, equal ones being one document.

::

    2WikiMultihopQA  dev.parquet or dev.json     _id or id, question, context, supporting_facts
        context is [[title, [sentences]]] or {title: […], sentences: [[…]]}, supporting_facts [[title, sentence]] or
        {title: […], sent_id: […]}; either may be written as JSON in a text
    MuSiQue          musique_ans_v1.0_dev.jsonl  id, question, paragraphs of title, paragraph_text, is_supporting
    NovelHopQA       any file or folder called hop_1 … hop_4 (csv, json, jsonl, Parquet)    book, context, question

Document ids count distinct passages in the order of the files: ``p1``, ``p2`` …, and for NovelHopQA ``<book>#<n>``.
NovelHopQA's questions are named by their hops: ``hop_2-17``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from cdp.base.errors import InputError
from cdp.base.records import Document, Qrel
from cdp.base.workspace import slug
from cdp.benchmarks.schemas import Contents, Entry, Part, PartFiles, Schema, SourceQuery
from cdp.benchmarks.schemas.records import HINT, SourceRow, list_of, rows, text_of
from cdp.corpus.checks import excerpt

HOPS = ("hop_1", "hop_2", "hop_3", "hop_4")
ENDINGS = ("parquet", "jsonl", "json", "csv")


class Paragraph(NamedTuple):
    """A passage of a question. ``prefix`` begins its document's id."""

    title: str
    text: str
    relevant: bool = True
    prefix: str = "p"


class Question(NamedTuple):
    id: str
    text: str
    passages: list[Paragraph]


def _contents(questions: Callable[[], Iterator[Question]]) -> Contents:
    """Distinct passages as documents, questions as queries, relevant passages as judgments."""

    def numbered() -> Iterator[tuple[Question, list[tuple[bool, str, Paragraph]]]]:
        """Each question with its passages as (first of its kind, document id, passage)."""
        id_of: dict[bytes, str] = {}
        count: Counter[str] = Counter()
        for question in questions():
            identified = []
            for passage in question.passages:
                content = f"{passage.title}\0{passage.text}".encode("utf-8", "surrogatepass")
                key = hashlib.blake2b(content, digest_size=16).digest()
                first = key not in id_of
                if first:
                    count[passage.prefix] += 1
                    id_of[key] = f"{passage.prefix}{count[passage.prefix]}"
                identified.append((first, id_of[key], passage))

            yield question, identified

    def documents() -> Iterator[Document]:
        for _, identified in numbered():
            yield from (Document(name, passage.text, passage.title) for first, name, passage in identified if first)

    def queries() -> Iterator[SourceQuery]:
        return (SourceQuery(question.id, question.text) for question in questions())

    def judgments() -> Iterator[Qrel]:
        for question, identified in numbered():
            for document in dict.fromkeys(name for _, name, passage in identified if passage.relevant):
                yield Qrel(question.id, document, 1)

    return Contents(documents, queries, judgments)


def _multi_hop_parts(entry: Entry) -> list[Part]:
    split = entry.split
    names = (f"musique_ans_v1.0_{split}.jsonl",) if entry.name == "musique" else ()
    patterns = (*names, f"{split}.parquet", f"{split}.jsonl", f"{split}.json", "data/validation-*.parquet")
    return [Part("questions", entry.repos[0], patterns)]


def _multi_hop(entry: Entry, files: PartFiles) -> Contents:
    def questions() -> Iterator[Question]:
        for path in files["questions"]:
            for row in rows(path):
                query, text = text_of(row, "_id", "id", file=path), text_of(row, "question", file=path)
                yield Question(query, text, _paragraphs(row))

    return _contents(questions)


def _paragraphs(row: SourceRow) -> list[Paragraph]:
    """Return the paragraphs of one question, in either way of writing them."""
    if "paragraphs" in row:
        listed = list_of(row, "paragraphs")
        if not all(isinstance(p, dict) for p in listed):
            raise InputError(f"A question's paragraph is no object: {excerpt(listed)!r}.", hint=HINT)
        return [
            Paragraph(text_of(p, "title"), text_of(p, "paragraph_text"), bool(p.get("is_supporting"))) for p in listed
        ]

    supporting = {title for title, _ in _pairs(row.get("supporting_facts"), "sent_id")}
    paragraphs = []
    for title, sentences in _pairs(row.get("context"), "sentences"):
        if not isinstance(sentences, list):
            raise InputError(f"A paragraph's sentences are no list: {excerpt(sentences)!r}.", hint=HINT)
        paragraphs.append(Paragraph(title, " ".join(str(s).strip() for s in sentences), title in supporting))

    return paragraphs


def _pairs(value: Any, second: str) -> list[tuple[str, Any]]:
    """Return [[title, x]] or {title: […], second: […]}, possibly as JSON, as pairs."""
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


def _novel_parts(entry: Entry) -> list[Part]:
    return [
        Part(hop, entry.repos[0], tuple(f"**/{hop}{rest}.{ending}" for rest in ("*", "/*") for ending in ENDINGS))
        for hop in HOPS
    ]


def _novel(entry: Entry, files: PartFiles) -> Contents:
    def questions() -> Iterator[Question]:
        for hop in HOPS:
            found = ((path, row) for path in files[hop] for row in rows(path))
            for number, (path, row) in enumerate(found, 1):
                book = row.get("book") or re.sub(r"[^\w]+", " ", path.stem)
                passage = Paragraph(
                    "", text_of(row, "context", file=path), prefix=f"{slug(str(book), fallback='book')}#"
                )
                yield Question(f"{hop}-{number}", text_of(row, "question", file=path), [passage])

    return _contents(questions)


PARAGRAPHS = Schema(
    "paragraphs",
    "Questions with their paragraphs",
    "Multi-hop questions that carry their paragraphs (2WikiMultihopQA, MuSiQue).",
    _multi_hop_parts,
    _multi_hop,
)
CONTEXTS = Schema(
    "contexts",
    "Questions with their passage",
    "Questions that carry the one passage they were written for (NovelHopQA).",
    _novel_parts,
    _novel,
)
