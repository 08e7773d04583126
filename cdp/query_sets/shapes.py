"""Rows of others' files: Tevatron, DPR, FlagEmbedding, FlexRAG, LlamaIndex, ragas, SQuAD, Argilla, Label Studio.

They name documents by their texts, or by passages with id and text. What is read here is one row; ``imports`` finds the
documents, and counts what it cannot find.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from cdp.corpus.checks import GUESSES, cell_of, id_in, number_in
from cdp.corpus.grades import grade_of
from cdp.corpus.readers import BadRow, Row

# Fields that hold documents (or what is known of them) in place of an id.
_NEGATIVE = re.compile(r"negative(?:_\d+)?")
_FLAG_EMBEDDING = ("pos", "neg", "pos_id", "neg_id", "pos_scores", "neg_scores")
_TEVATRON = ("positive_passages", "negative_passages")
_TEVATRON_IDS = ("positive_document_ids", "negative_document_ids")
_DPR = ("positive_ctxs", "hard_negative_ctxs")
_FLEXRAG = "golden_contexts"
_RAGAS, _RAGAS_IDS = "reference_contexts", "reference_context_ids"
_PYLATE = ("documents", "document_ids", "scores")
LOG_PROBS = ("logprobs", "log_probs")
# Of the documents of a row: a teacher's scores, and grades.
SCORES, _GRADES = ("label", "scores"), "labels"
# Fields that may hold a document's text or id, or a list of them, beside a query.
TEXT_FIELDS = (
    "text",
    "passage",
    "document",
    "docs",
    "content",
    "contents",
    "context",
    "contexts",
    _RAGAS,
    *GUESSES["named-document"],
)
# Looked at last: an answer may be a passage, and may be one word.
ANSWER = ("answer",)
# What ragas puts before the texts of a question over several documents.
_HOP = re.compile(r"\A<\d+-hop>\s+")


class NamedDocument(NamedTuple):
    """A document as a file names it: by its id, its text, or both (or by one value that is either); ``score`` is a
    teacher's. A title stands before the text or not."""

    id: str = ""
    text: str = ""
    score: float | None = None
    title: str = ""

    @property
    def shown(self) -> str:
        """The id, and the beginning of the text; of one value that is either, a single word is an id."""
        if not self.text or (self.id == self.text and " " not in self.text):
            return repr(self.id[:80])

        text = f"with the text {self.text[:40]!r}"
        return text if self.id in ("", self.text) else f"{self.id!r} {text}"


@dataclass(frozen=True)
class RowDocuments:
    """The documents that answer a row's query, and its hard negatives."""

    positives: Sequence[NamedDocument]
    negatives: Sequence[NamedDocument]


def holds_passages(name: str) -> bool:
    """Return True for a column that ``passages_of`` reads."""
    lists = (*_TEVATRON, *_TEVATRON_IDS, *_DPR, _FLEXRAG, _RAGAS_IDS)
    known = (*lists, *_FLAG_EMBEDDING, *_PYLATE, "positive", _GRADES)
    return name in known or bool(_NEGATIVE.fullmatch(name))


def holds_scores(value: Any) -> bool:
    """Return True for a list of numbers."""
    return isinstance(value, list) and None not in map(number_in, value)


def passages_of(record: Mapping[str, Any], field: str | None = None, chosen: bool = False) -> RowDocuments | None:
    """Return the documents that a row holds in a trainer's fields or, by text, in ``field``; None where it holds none.

    The field may hold ids as well; one that was ``chosen`` goes before all others. ValueError for another shape.
    """
    found = None if chosen else _of_trainers(record)
    if found is None and field and record.get(field) not in (None, ""):
        found = _beside_negatives(record, field)

    if found is not None and not found.positives:
        raise ValueError("no document answers the query")

    return found


def _of_trainers(record: Mapping[str, Any]) -> RowDocuments | None:
    """Return the documents in the fields of a trainer; None where there are no such fields."""
    if _TEVATRON[0] in record:
        positives, negatives = _passages(record, _TEVATRON[0]), _passages(record, _TEVATRON[1])
    elif _TEVATRON_IDS[0] in record:
        positives, negatives = ([NamedDocument(id_in(id)) for id in _list(record, name)] for name in _TEVATRON_IDS)
    elif _DPR[0] in record:
        # Their scores are those of a first search, and no teacher's.
        positives, negatives = ([one._replace(score=None) for one in _passages(record, name)] for name in _DPR)
    elif _FLEXRAG in record:
        positives, negatives = _passages(record, _FLEXRAG), []
    elif record.get(_RAGAS_IDS):
        texts = [id_or_text(text).text for text in _list(record, _RAGAS)]
        ids = _list(record, _RAGAS_IDS)
        positives, negatives = _in_parallel(texts or [""] * len(ids), ids, []), []
    elif isinstance(record.get("pos"), list):
        if isinstance(record.get("query"), list):
            raise ValueError('"query" is a list beside "pos": leave out the instruction, or join it with the query')
        positives, negatives = _texts(record, "pos"), _texts(record, "neg")
    elif isinstance(record.get(_PYLATE[0]), list):
        # A file of PyLate ranks documents by their scores alone; in ours the first one is the query's own.
        found = _in_parallel(*(_list(record, name) for name in _PYLATE))
        positives, negatives = found[:1], found[1:]
    elif isinstance(record.get("positive"), str | list):
        return _beside_negatives(record, "positive")
    else:
        return None

    return RowDocuments(positives, negatives)


def _beside_negatives(record: Mapping[str, Any], field: str) -> RowDocuments:
    """Return the documents of ``field``, and of ``negative``, ``negative_1`` ….

    ``label`` or ``scores`` hold a teacher's scores of all of them. ``labels`` hold grades of a list, as of
    ``mine_hard_negatives(output_format="labeled-list")``: those of 0 and below are its negatives.
    """
    documents = list(map(id_or_text, _as_list(record[field])))
    n_positives = len(documents)
    for name in sorted(filter(_NEGATIVE.fullmatch, record), key=lambda name: (len(name), name)):
        if record[name] not in (None, ""):
            documents += map(id_or_text, _as_list(record[name]))

    grades = record.get(_GRADES)
    if isinstance(grades, list) and len(grades) == n_positives:
        return _graded(documents, grades)

    scores: list[Any] = next((record[name] for name in SCORES if holds_scores(record.get(name))), [])
    if len(scores) == len(documents):
        # The first may be the only one that answers the query: nothing tells a positive from a negative.
        if len(documents) == n_positives > 1:
            raise ValueError("scores of several documents do not say which of them answer the query")
        documents = [one._replace(score=number_in(score)) for one, score in zip(documents, scores, strict=True)]

    return RowDocuments(documents[:n_positives], documents[n_positives:])


def _graded(documents: Sequence[NamedDocument], grades: Sequence[Any]) -> RowDocuments:
    """Divide the first documents by their grades; those without one are negatives."""
    known = list(map(grade_of, grades))
    if None in known:
        raise ValueError(f'"{_GRADES}" holds what is no grade')

    positives = [one for one, grade in zip(documents, known, strict=False) if grade and grade > 0]
    negatives = [one for one, grade in zip(documents, known, strict=False) if not grade or grade <= 0]
    return RowDocuments(positives, [*negatives, *documents[len(known) :]])


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def id_or_text(value: Any) -> NamedDocument:
    """Return a document that one value names, by its id or its text. ValueError for what is neither."""
    if not isinstance(value, str):
        if not (name := id_in(value)):
            raise ValueError("the document id is neither text nor a number")
        return NamedDocument(name)

    text = _HOP.sub("", value)
    return NamedDocument(value if text == value else "", text)


def log_probability(record: Mapping[str, Any], n_queries: int) -> tuple[float | None, ...]:
    """Return each query's mean token log-probability. InPars lists those of the tokens, our files a mean per query."""
    value = first_value(record, LOG_PROBS, missing=(None,))
    values = list(map(number_in, _as_list(value)))
    unknown = (None,) * n_queries
    if n_queries > 1:
        return tuple(values) if len(values) == n_queries else unknown

    known = [number for number in values if number is not None]
    return (number_in(sum(known) / len(known)),) if known else unknown


def first_value(record: Mapping[str, Any], names: Iterable[str], missing: Sequence[Any]) -> Any:
    """Return what a row says in the first of these fields that it fills; None where it fills none."""
    for name in names:
        if name in record and record[name] not in missing:
            return record[name]

    return None


def unfolded(row: Row | BadRow) -> Iterator[Row | BadRow]:
    """Yield a row as it is, that of a record of Argilla or Label Studio with its fields side by side; of an object that
    holds many (a question set or examples of LlamaIndex, the paragraphs of SQuAD), a row per query."""
    if isinstance(row, BadRow):
        yield row
        return

    values = row.values
    if _within(values):
        yield from (Row(number, inner) for number, inner in enumerate(_inner(values), start=1))
    elif isinstance(values.get("relevant_docs"), dict) and isinstance(values.get("queries"), dict):
        yield from _question_set(values)
    elif isinstance(values.get("fields"), dict) or any(name.endswith(_RESPONSES) for name in values):
        yield _argilla(row)
    elif isinstance(values.get("data"), dict) and isinstance(values.get("annotations"), list):
        yield _label_studio(row)
    elif {"annotation_id", "lead_time"} <= values.keys():
        yield Row(row.line, {name: _answer(_of_json(value)) for name, value in values.items()})
    else:
        yield row


# Objects within objects: of SQuAD, from the outermost to the innermost; of LlamaIndex's LabelledRagDataset.
_OBJECTS = ("data", "paragraphs", "qas", "examples")
# A column of Argilla's `to_datasets`: all answers to one question.
_RESPONSES = ".responses"


def _within(values: Mapping[str, Any]) -> str | None:
    """Return the field that holds the objects of a row without a query, if there is one."""
    if "query" in values or "question" in values:
        return None

    for name in _OBJECTS:
        held = values.get(name)
        if isinstance(held, list) and held and all(isinstance(one, dict) for one in held):
            return name

    return None


def _inner(values: Mapping[str, Any], deepest: int = len(_OBJECTS)) -> Iterator[Mapping[str, Any]]:
    """Yield the innermost objects, each with the fields of those around it."""
    name = _within(values) if deepest else None
    if name is None:
        yield values
        return

    around = {field: value for field, value in values.items() if field != name}
    for one in values[name]:
        yield from _inner({**around, **one}, deepest - 1)


def _question_set(values: Mapping[str, Any]) -> Iterator[Row]:
    texts = _mapping(values.get("corpus"))
    for number, (query_id, query) in enumerate(values["queries"].items(), start=1):
        ids = values["relevant_docs"].get(query_id)
        if not isinstance(ids, list):
            ids = []

        passages = [{"docid": id, "text": texts.get(str(id), "")} for id in ids]
        yield Row(number, {"query": query, _TEVATRON[0]: passages})


def _argilla(row: Row) -> Row | BadRow:
    """Return a record, or a row of its table, with the answer to each question, which people gave as one."""
    values = row.values
    if values.get("status") == "discarded":
        return BadRow(row.line, "discarded", "a record that was discarded in Argilla")

    if isinstance(values.get("fields"), dict):
        flat = {"id": values.get("id"), **_mapping(values.get("metadata")), **values["fields"]}
        responses = dict(_mapping(values.get("responses")))
    else:
        flat, responses = {name: value for name, value in values.items() if _RESPONSES not in name}, {}

    try:
        for name in values:
            if name.endswith(_RESPONSES):
                responses[name.removesuffix(_RESPONSES)] = _submitted(values, name)
    except ValueError as error:
        return BadRow(row.line, "unusable cell", str(error))

    given = {}
    for question, answers in responses.items():
        held = [] if answers in (None, "") else _as_list(answers)
        given[question] = [answer.get("value") if isinstance(answer, dict) else answer for answer in held]

    return _agreed(row.line, flat, given, "Argilla")


def _submitted(values: Mapping[str, Any], name: str) -> list[Any]:
    """Return the answers in a column of Argilla's, without drafts and discarded ones. ValueError as ``cell_of``."""
    held = cell_of(values[name])
    answers = [] if held in (None, "") else _as_list(held)
    states = _as_list(cell_of(values.get(f"{name}.status")))
    if len(states) != len(answers) or None in states:
        return answers

    return [answer for answer, state in zip(answers, states, strict=True) if state == "submitted"]


def _label_studio(row: Row) -> Row | BadRow:
    """Return a task of Label Studio's JSON: its data, and what people answered."""
    done = [one for one in row.values["annotations"] if isinstance(one, dict)]
    kept = [one for one in done if not one.get("was_cancelled")]
    if done and not kept:
        return BadRow(row.line, "discarded", "a task that was skipped in Label Studio")

    given: dict[str, list[Any]] = {}
    for annotation in kept:
        own: dict[str, list[Any]] = {}
        for result in filter(None, map(_mapping, _as_list(annotation.get("result")))):
            own.setdefault(str(result.get("from_name")), []).append(result.get("value"))
        for question, answers in own.items():
            given.setdefault(question, []).append(_answer(answers))

    return _agreed(row.line, row.values["data"], given, "Label Studio")


# What Label Studio puts around an answer.
_ANSWERS = ("text", "choices", "rating", "number")


def _answer(value: Any) -> Any:
    """Return an answer without the objects, and the list of one, that Label Studio puts around it."""
    if isinstance(value, list) and len(value) == 1:
        return _answer(value[0])
    if isinstance(value, list):
        return list(map(_answer, value))
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _ANSWERS:
        return _answer(next(iter(value.values())))

    return value


def _of_json(value: Any) -> Any:
    """Return what a cell holds as JSON; the cell as it is where it holds none."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            return json.loads(value)

    return value


def _agreed(line: int | None, fields: Mapping[str, Any], given: Mapping[str, list[Any]], program: str) -> Row | BadRow:
    """Return a row with the answer to each question, on which all who gave one agree."""
    flat = dict(fields)
    for question, answers in given.items():
        if answers and answers.count(answers[0]) < len(answers):
            return BadRow(line, "disagreement", f"the answers to {question!r} in {program} differ")
        if answers:
            flat[question] = answers[0]

    return Row(line, flat)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(record: Mapping[str, Any], name: str) -> list[Any]:
    value = record.get(name) or []
    if isinstance(value, dict) and len({len(_as_list(column)) for column in value.values()}) == 1:
        # How `datasets` before version 4 writes a list of objects: column by column.
        value = [dict(zip(value, row, strict=True)) for row in zip(*map(_as_list, value.values()), strict=True)]
    if not isinstance(value, list):
        raise ValueError(f'"{name}" is no list')
    return value


def _passages(record: Mapping[str, Any], name: str) -> list[NamedDocument]:
    """The passages of Tevatron's or FlexRAG's lists: objects."""
    return list(map(_passage, _list(record, name)))


def _passage(value: Any) -> NamedDocument:
    if not isinstance(value, dict):
        raise ValueError("a passage is no object with docid and text")
    value = value | _mapping(value.get("data"))
    title, text = value.get("title"), _text(value.get("text") or "").strip()
    title = str(title) if isinstance(title, int | float) else _text(title or "").strip()
    id = first_value(value, ("docid", "passage_id", "psg_id", "context_id"), missing=(None, ""))
    return NamedDocument(id_in(id), text, number_in(value.get("score")), title)


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

    return list(map(NamedDocument, map(id_in, ids), map(_text, texts), map(number_in, scores)))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a document is no text")
    return value
