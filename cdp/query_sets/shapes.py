"""Rows of others' training files: Tevatron, FlagEmbedding, PyLate, anchor/positive, LlamaIndex, Argilla, InPars.

They name documents by their texts, or by passages with id and text. What is read here is one row; ``imports`` finds the
documents, and counts what it cannot find.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cdp.corpus.checks import RefusedValueError, checked_id
from cdp.corpus.readers import BadRow, Row

# Fields that hold documents (or what is known of them) in place of an id.
_NEGATIVE = re.compile(r"negative(?:_\d+)?")
_FLAG_EMBEDDING = ("pos", "neg", "pos_id", "neg_id", "pos_scores", "neg_scores")
_TEVATRON = ("positive_passages", "negative_passages")
_PYLATE = ("documents", "document_ids", "scores")
LOG_PROBS = ("logprobs", "log_probs")
# An anchor's documents, then a teacher's scores of them.
_LABEL = "label"


class NamedDocument(NamedTuple):
    """A document as a file names it: by its id, its text, or both; ``score`` is a teacher's."""

    id: str = ""
    text: str = ""
    score: float | None = None

    @property
    def shown(self) -> str:
        """The id, and the beginning of the text."""
        if not self.text:
            return repr(self.id)

        text = f"with the text {self.text[:40]!r}"
        return f"{self.id!r} {text}" if self.id else text


@dataclass(frozen=True)
class RowDocuments:
    """The documents that answer a row's query, and its hard negatives."""

    positives: Sequence[NamedDocument]
    negatives: Sequence[NamedDocument]


def holds_passages(name: str) -> bool:
    """Return True for a column that ``passages_of`` reads."""
    return name in (*_TEVATRON, *_FLAG_EMBEDDING, *_PYLATE, "positive", _LABEL) or bool(_NEGATIVE.fullmatch(name))


def passages_of(record: Mapping[str, Any]) -> RowDocuments | None:
    """Return the documents that a row holds by text; None where it holds none. ValueError for another shape."""
    if _TEVATRON[0] in record:
        positives, negatives = _passages(record, _TEVATRON[0]), _passages(record, _TEVATRON[1])
    elif isinstance(record.get("pos"), list):
        positives, negatives = _texts(record, "pos"), _texts(record, "neg")
    elif isinstance(record.get(_PYLATE[0]), list):
        # A file of PyLate ranks documents by their scores alone; in ours the first one is the query's own.
        found = _in_parallel(*(_list(record, name) for name in _PYLATE))
        positives, negatives = found[:1], found[1:]
    elif isinstance(record.get("positive"), str | list):
        positives, negatives = _beside_negatives(record)
    else:
        return None

    if not positives:
        raise ValueError("no document answers the query")

    return RowDocuments(positives, negatives)


def _beside_negatives(record: Mapping[str, Any]) -> tuple[list[NamedDocument], list[NamedDocument]]:
    """Return the documents of ``positive``, and of ``negative``, ``negative_1`` …; ``label`` scores all of them."""
    positives = _as_list(record["positive"])
    names = sorted(filter(_NEGATIVE.fullmatch, record), key=lambda name: (len(name), name))
    texts = list(positives)
    for name in names:
        if record[name] not in (None, ""):
            texts += _as_list(record[name])

    scores = record.get(_LABEL)
    if not isinstance(scores, list):
        scores = []

    found = _in_parallel(texts, [], scores)
    return found[: len(positives)], found[len(positives) :]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def log_probability(record: Mapping[str, Any], n_queries: int) -> tuple[float | None, ...]:
    """Return each query's mean token log-probability. InPars lists those of the tokens, our files a mean per query."""
    value = first_value(record, LOG_PROBS, missing=(None,))
    values = list(map(_number, _as_list(value)))
    unknown = (None,) * n_queries
    if n_queries > 1:
        return tuple(values) if len(values) == n_queries else unknown

    known = [number for number in values if number is not None]
    if not known:
        return unknown
    return (math.fsum(known) / len(known),) * n_queries


def first_value(record: Mapping[str, Any], names: Iterable[str], missing: Sequence[Any]) -> Any:
    """Return what a row says in the first of these fields that it fills; None where it fills none."""
    for name in names:
        if name in record and record[name] not in missing:
            return record[name]

    return None


def unfolded(row: Row | BadRow) -> Iterator[Row | BadRow]:
    """Yield a row as it is, that of a record of Argilla with its fields side by side; of a question set of LlamaIndex,
    which is one object, a row per query."""
    if isinstance(row, BadRow):
        yield row
    elif isinstance(row.values.get("relevant_docs"), dict) and isinstance(row.values.get("queries"), dict):
        yield from _question_set(row.values)
    elif isinstance(row.values.get("fields"), dict):
        yield _argilla(row)
    else:
        yield row


def _question_set(values: Mapping[str, Any]) -> Iterator[Row]:
    texts = _mapping(values.get("corpus"))
    for number, (query_id, query) in enumerate(values["queries"].items(), start=1):
        ids = values["relevant_docs"].get(query_id)
        if not isinstance(ids, list):
            ids = []

        passages = [{"docid": id, "text": texts.get(str(id), "")} for id in ids]
        yield Row(number, {"query": query, _TEVATRON[0]: passages})


def _argilla(row: Row) -> Row | BadRow:
    """Fields, metadata and the answer to each question, which people gave as one."""
    values = row.values
    if values.get("status") == "discarded":
        return BadRow(row.line, "discarded", "a record that was discarded in Argilla")

    flat = {"id": values.get("id"), **_mapping(values.get("metadata")), **_mapping(values.get("fields"))}
    for question, answers in _mapping(values.get("responses")).items():
        given = [answer.get("value") for answer in answers or () if isinstance(answer, dict)]
        if not given:
            continue
        if given.count(given[0]) < len(given):
            return BadRow(row.line, "disagreement", f"the answers to {question!r} in Argilla differ")
        flat[question] = given[0]

    return Row(row.line, flat)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(record: Mapping[str, Any], name: str) -> list[Any]:
    value = record.get(name) or []
    if not isinstance(value, list):
        raise ValueError(f'"{name}" is no list')
    return value


def _passages(record: Mapping[str, Any], name: str) -> list[NamedDocument]:
    """The passages of Tevatron's lists: objects."""
    return list(map(_passage, _list(record, name)))


def _passage(value: Any) -> NamedDocument:
    if not isinstance(value, dict):
        raise ValueError("a passage is no object with docid and text")
    text = f"{_text(value.get('title') or '')} {_text(value.get('text') or '')}".strip()
    return NamedDocument(_id(value.get("docid")), text, _number(value.get("score")))


def _texts(record: Mapping[str, Any], name: str) -> list[NamedDocument]:
    """The passages of FlagEmbedding's lists: texts, maybe with ids and scores beside them."""
    return _in_parallel(_list(record, name), _list(record, f"{name}_id"), _list(record, f"{name}_scores"))


def _in_parallel(texts: list[Any], ids: list[Any], scores: list[Any]) -> list[NamedDocument]:
    """Documents of a list of texts, with the ids and scores beside it where these are as many."""
    unknown = [None] * len(texts)
    if len(ids) != len(texts):
        ids = unknown
    if len(scores) != len(texts):
        scores = unknown

    return list(map(NamedDocument, map(_id, ids), map(_text, texts), map(_number, scores)))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a document is no text")
    return value


def _id(value: Any) -> str:
    if value is None:
        return ""

    try:
        return checked_id(value, "")
    except RefusedValueError:
        return ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
