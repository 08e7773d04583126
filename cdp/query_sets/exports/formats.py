"""Export formats: BEIR, LlamaIndex, Argilla, sentence-transformers, PyLate, FlagEmbedding, Tevatron, OpenAI Batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cdp.base.errors import InputError
from cdp.base.records import Document
from cdp.query_sets import plain_form, shared_queries
from cdp.query_sets.exports import Example, Export, ExportSelection

ROWS = 8192


def _with_ids(selection: ExportSelection) -> Iterator[tuple[str, Example]]:
    """Yield each query with its id; one that several documents have keeps that of the first of them."""
    shared = shared_queries(selection.workspace, selection.query_set)
    id_of: dict[str, str] = {}

    for example in selection.examples():
        plain = plain_form(example.query)
        yield id_of.setdefault(plain, example.id) if plain in shared else example.id, example


def _write_beir(selection: ExportSelection, target: Path) -> int:
    """A folder with ``corpus.jsonl`` (the documents that have queries), ``queries.jsonl`` and ``qrels/train.tsv``.

    A query that several documents have is written once, with all of them as relevant. Judgments have no place for
    hard negatives: these were not judged.
    """
    (target / "qrels").mkdir(parents=True)
    n = n_negatives = 0
    with (
        open(target / "corpus.jsonl", "w", encoding="utf-8") as corpus,
        open(target / "queries.jsonl", "w", encoding="utf-8") as queries,
        open(target / "qrels" / "train.tsv", "w", encoding="utf-8") as qrels,
    ):
        qrels.write("query-id\tcorpus-id\tscore\n")
        written = ""
        for query_id, example in _with_ids(selection):
            document = example.positives[0]
            if document.id != written:
                record = {"_id": document.id, "title": document.title, "text": document.text}
                corpus.write(json.dumps(record, ensure_ascii=False) + "\n")
                written = document.id

            if query_id == example.id:
                queries.write(json.dumps({"_id": query_id, "text": example.query}, ensure_ascii=False) + "\n")
                n += 1

            qrels.write(f"{query_id}\t{document.id}\t1\n")
            n_negatives += bool(example.negatives)

    selection.note(n_negatives, "Hard negatives left out, for which BEIR has no place")
    return n


BEIR = Export(
    "beir", "BEIR", "A folder with corpus.jsonl, queries.jsonl and qrels/train.tsv.", "-beir", _write_beir, order=10
)


def _write_question_set(selection: ExportSelection, target: Path) -> int:
    """One object that ``EmbeddingQAFinetuneDataset`` reads: ``queries``, ``corpus``, ``relevant_docs``, ``mode``.

    A query that several documents have is written once, with all of them. The object is held in memory.
    """
    queries: dict[str, str] = {}
    corpus: dict[str, str] = {}
    relevant: dict[str, list[str]] = {}
    n_negatives = 0
    for query_id, example in _with_ids(selection):
        document = example.positives[0]
        queries.setdefault(query_id, example.query)
        corpus[document.id] = document.content
        relevant.setdefault(query_id, []).append(document.id)
        n_negatives += bool(example.negatives)

    held = {"queries": queries, "corpus": corpus, "relevant_docs": relevant, "mode": "text"}
    target.write_text(json.dumps(held, ensure_ascii=False) + "\n", encoding="utf-8")
    selection.note(n_negatives, "Hard negatives left out, for which LlamaIndex has no place")
    return len(queries)


LLAMA_INDEX = Export(
    "llamaindex",
    "LlamaIndex",
    "A JSON file with queries, corpus and relevant_docs: a question set of EmbeddingQAFinetuneDataset.",
    ".json",
    _write_question_set,
    order=37,
)


def _write_records(selection: ExportSelection, target: Path) -> int:
    """A JSON list of records for ``dataset.records.from_json``: people see query and text, and answer questions."""
    n = n_scored = 0
    with open(target, "w", encoding="utf-8") as file:
        for example in selection.examples():
            metadata: dict[str, Any] = {"document_id": example.positives[0].id}
            if example.negatives:
                metadata["negatives"] = [document.id for document in example.negatives]
            fields = {"query": example.query, "text": example.positives[0].content}
            record = {"id": example.id, "fields": fields, "metadata": metadata}
            file.write((",\n" if n else "[\n") + json.dumps(record, ensure_ascii=False))
            n += 1
            n_scored += bool(example.scores)
        file.write("\n]\n" if n else "[]\n")

    selection.note(n_scored, "A teacher's scores left out, for which a record has no place")
    return n


ARGILLA = Export(
    "argilla",
    "Argilla",
    "A JSON file of records with the fields query and text; the metadata names document and negatives.",
    ".json",
    _write_records,
    order=38,
)


def _write_parquet(target: Path, columns: Mapping[str, pa.DataType], rows: Iterator[Sequence[Any]]) -> None:
    """Write rows of values, each in the order of ``columns`` (name → type)."""
    schema = pa.schema(columns)

    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        while block := list(islice(rows, ROWS)):
            writer.write_table(pa.table(list(zip(*block, strict=True)), schema=schema))


def _write_columns(selection: ExportSelection, target: Path, *, triplets: bool) -> int:
    """A Parquet file of texts: ``anchor`` (the query), ``positive``, and the hard negatives of the set.

    As sentence-transformers' own ``mine_hard_negatives`` names them: ``negative_1`` to ``negative_n`` in one row, or
    as ``triplets`` a row with ``negative`` for each. ``label`` holds a teacher's scores of the row's documents, as
    ``MarginMSELoss`` and ``DistillKLDivLoss`` read them; other losses pass over that name.
    """
    most, scored = selection.widest()
    width = min(most, 1) if triplets else most
    numbers = [""] if width == 1 else [f"_{number}" for number in range(1, width + 1)]
    columns = dict.fromkeys(("anchor", "positive", *(f"negative{number}" for number in numbers)), pa.string())
    if scored:
        columns["label"] = pa.list_(pa.float64())

    n = n_short = n_without = n_unscored = 0

    def rows() -> Iterator[list[Any]]:
        nonlocal n, n_short, n_without, n_unscored

        for example in selection.examples():
            if width and not example.negatives:
                n_without += 1
            elif scored and not example.scores:
                n_unscored += 1
            else:
                n += 1
                n_short += not triplets and len(example.negatives) < width
                yield from _rows_of(example, width, triplets, scored)

    _write_parquet(target, columns, rows())
    selection.note(n_without, "Left out without a hard negative, which each row holds")
    selection.note(n_unscored, "Left out without the teacher's scores, which each row holds")
    selection.note(n_short, f"Fewer than {width} hard negatives, so theirs are repeated")

    return n


def _rows_of(example: Example, width: int, triplets: bool, scored: bool) -> Iterator[list[Any]]:
    """Yield the rows of a query: one with ``width`` negatives, its own in turn where it has fewer, or triplets."""
    own, *others = example.scores if scored else [0.0] * (1 + len(example.negatives))
    scores = zip(example.negatives, others, strict=True)
    rows = [[pair] for pair in scores] if triplets and width else [list(islice(cycle(scores), width))]
    for row in rows:
        texts = [example.query, example.positives[0].content, *(document.content for document, _ in row)]
        yield [*texts, *([[own, *(score for _, score in row)]] if scored else [])]


_NO_NEED = "losses with in-batch negatives do without"

SENTENCE_TRANSFORMERS = Export(
    "sentence-transformers",
    "sentence-transformers",
    "A Parquet file with the columns anchor and positive, negative_1 … and label (a teacher's scores).",
    ".parquet",
    partial(_write_columns, triplets=False),
    _NO_NEED,
    order=20,
)

TRIPLETS = Export(
    "sentence-transformers-triplets",
    "sentence-transformers, triplets",
    "A Parquet file with the columns anchor, positive and negative: a row for each hard negative.",
    ".parquet",
    partial(_write_columns, triplets=True),
    _NO_NEED,
    order=25,
)


def _write_lists(selection: ExportSelection, target: Path) -> int:
    """A Parquet file of ``query``, its ``documents`` (the positive, then hard negatives), their ids and ``scores``.

    PyLate's ``Distillation`` reads all documents of a row from one column, as many in each row; its ``Contrastive``
    reads the columns of sentence-transformers.
    """
    texts, numbers = pa.list_(pa.string()), pa.list_(pa.float64())
    columns = {"query_id": pa.string(), "query": pa.string(), "document_ids": texts, "documents": texts}

    width, scored = selection.widest()
    if not scored:
        raise InputError(
            "The set has no hard negatives with a teacher's scores, which each row holds.",
            hint="queries mine --teacher adds them; PyLate's Contrastive reads the format sentence-transformers.",
        )

    n = n_short = n_unscored = 0

    def rows() -> Iterator[list[Any]]:
        nonlocal n, n_short, n_unscored

        for example in selection.examples():
            if not example.scores:
                n_unscored += 1
                continue

            n += 1
            n_short += len(example.negatives) < width
            others = zip(example.negatives, example.scores[1:], strict=True)
            row = [(example.positives[0], example.scores[0]), *islice(cycle(others), width)]
            documents, scores = zip(*row, strict=True)
            ids, contents = [document.id for document in documents], [document.content for document in documents]
            yield [example.id, example.query, ids, contents, scores]

    _write_parquet(target, {**columns, "scores": numbers}, rows())
    selection.note(n_unscored, "Left out without hard negatives that a teacher scored, which each row holds")
    selection.note(n_short, f"Fewer than {width} hard negatives, so theirs are repeated")

    return n


PYLATE = Export(
    "pylate",
    "PyLate, distillation",
    "A Parquet file with query, documents and scores, as PyLate's Distillation reads them.",
    ".parquet",
    _write_lists,
    order=27,
)


def _write_lines(selection: ExportSelection, target: Path, *, line: Callable[[Example], dict[str, Any]]) -> int:
    """JSONL with a line per query, or per teacher and sentence of dragon_s_faithful."""
    n = n_without = 0
    with open(target, "w", encoding="utf-8") as file:
        for example in selection.ranked():
            file.write(json.dumps(line(example), ensure_ascii=False) + "\n")
            n += 1
            n_without += not example.negatives
    if n_without < n:
        selection.note(n_without, f"Without a hard negative, though {_IN_EACH_LINE}")
    return n


# FlagEmbedding divides by the number of negatives, Tevatron draws from them: 1 asks for none.
_IN_EACH_LINE = "the trainer needs some in each line, or train_group_size 1"


def _flagembedding(example: Example) -> dict[str, Any]:
    """``query``, ``pos`` and ``neg`` as texts, their ids, and a teacher's scores where there are some."""
    line: dict[str, Any] = {"query": example.query}
    for name, documents in (("pos", example.positives), ("neg", example.negatives)):
        line[name] = [document.content for document in documents]
        line[f"{name}_id"] = [document.id for document in documents]
    if example.scores:
        line["pos_scores"], line["neg_scores"] = list(example.scores[:1]), list(example.scores[1:])
    return line


FLAG_EMBEDDING = Export(
    "flagembedding",
    "FlagEmbedding",
    "JSONL with query, pos and neg, their ids, and a teacher's scores.",
    ".jsonl",
    partial(_write_lines, line=_flagembedding),
    _IN_EACH_LINE,
    order=30,
)


def _tevatron(example: Example) -> dict[str, Any]:
    """``query_id``, ``query`` and passages with ``docid``, ``title`` and ``text``; a score stands in its passage."""
    scores = iter(example.scores)

    def passages(documents: Sequence[Document]) -> list[dict[str, Any]]:
        made = []
        for document in documents:
            score = next(scores, None)
            passage = {"docid": document.id, "title": document.title, "text": document.text}
            made.append(passage if score is None else {**passage, "score": score})
        return made

    return {
        "query_id": example.id,
        "query": example.query,
        "positive_passages": passages(example.positives),
        "negative_passages": passages(example.negatives),
    }


TEVATRON = Export(
    "tevatron",
    "Tevatron",
    "JSONL with query_id, query, positive_passages and negative_passages.",
    ".jsonl",
    partial(_write_lines, line=_tevatron),
    _IN_EACH_LINE,
    order=35,
)

# Not the queries but the requests that write them: ``cdp.synthesis.batch`` makes the file.
OPENAI_BATCH = Export(
    "openai-batch",
    "OpenAI Batch",
    "The requests that write this set, for the Batch API or vllm run-batch.",
    "-batch",
    order=40,
)
