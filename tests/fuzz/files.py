"""The small whole files that are damaged: what people bring, one of each kind."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TEXTS = (
    "The moon pulls the water of the sea; the tide follows, twice a day.",
    "Хлеб поднимается, потому что дрожжи выделяют газ.",
    "蜜蜂用舞蹈告诉同伴花在哪里。\nIt turns, and the others \"read\" it.",
    "Une abeille ne pique qu’une fois — dit-on.",
)  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {
        "_id": f"d{i}",
        "title": f"Title {i}" if i % 3 else "",
        "text": f"{text} ({i})",
        "queries": [f"what of {i}?", "why"],
    }
    for i, text in enumerate(TEXTS * 3)
]
IDS = [row["_id"] for row in ROWS]


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=i % 2 == 0) + "\n" for i, row in enumerate(rows)).encode()


def table(rows: list[dict[str, Any]], names: list[str], delimiter: str) -> bytes:
    def cell(value: Any) -> str:
        text = str(value).replace("\n", " ").replace("\t", " ")
        return '"' + text.replace('"', '""') + '"' if delimiter in text or '"' in text else text

    lines = [names, *([cell(row["_id" if name == "id" else name]) for name in names] for row in rows)]
    return "".join(delimiter.join(line) + "\r\n" for line in lines).encode()


def _parquet(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def odd_text(values: list[bytes]) -> pa.Array:
    """A column of texts whose bytes were never checked, as other writers leave them."""
    data = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(data), data.buffers())


def parquets() -> list[bytes]:
    """Plain, dictionary-coded, with bad UTF-8, with dates beyond year 9999, with ids and texts of odd types."""
    ids, texts = [row["_id"] for row in ROWS], [row["text"] for row in ROWS]
    far = pa.array([2**62] * len(ids), pa.int64())
    plain = {
        "_id": ids,
        "title": [row["title"] for row in ROWS],
        "text": texts,
        "queries": [row["queries"] for row in ROWS],
    }
    return [
        _parquet(pa.table(plain)),
        _parquet(pa.table(plain), compression="zstd", row_group_size=3, data_page_version="2.0"),
        _parquet(pa.table({"id": ids, "text": odd_text([t.encode()[:-1] + b"\xff\xfe" for t in texts])})),
        _parquet(pa.table({"id": far.cast(pa.timestamp("us")), "text": texts})),
        _parquet(pa.table({"id": ids, "text": texts, "title": pa.array([2**61] * len(ids), pa.timestamp("ms"))})),
        _parquet(
            pa.table({"id": [i.encode() for i in ids], "text": [t.encode() for t in texts], "title": range(len(ids))})
        ),
        _parquet(pa.table({"id": range(len(ids)), "text": [{"a": 1}] * len(ids), "title": [date(1, 1, 1)] * len(ids)})),
        _parquet(
            pa.table({"id": [datetime(2020, 1, 1, tzinfo=UTC)] * len(ids), "text": pa.array(texts).dictionary_encode()})
        ),
    ]


MARKDOWN = (
    b"---\ntitle: A page\n---\n# Tides\n\nThe moon pulls.\n\n## Why\n\nGravity.\n\n```sh\n# no heading\n```\n\n"
    b"Bees\n====\n\nThey dance.\n\n- one\n- two\n\n### Deep\n\nText.\n"
)
TEXT = "\n\n".join(TEXTS).encode()
QUERY_ROWS: list[dict[str, Any]] = [
    {"document_id": row["_id"], "queries": row["queries"], "negatives": [IDS[(i + 1) % 12], IDS[(i + 2) % 12]]}
    if i % 4 == 0
    else {"document_id": row["_id"], "query": f"what is said of {i}?"}
    for i, row in enumerate(ROWS)
]
# Rows of training files as other programs write them: each a form, with the texts of documents in place of ids.
TRAINING_ROWS: list[dict[str, Any]] = [
    {"query": "why tides?", "positive_passages": [{"docid": "d0", "title": 1984, "text": ROWS[0]["text"], "score": 2}],
     "negative_passages": [{"docid": "d1", "text": ROWS[1]["text"]}]},
    {"question": "why dough?", "positive_ctxs": [{"passage_id": "d1", "title": "", "text": ROWS[1]["text"]}],
     "hard_negative_ctxs": [{"text": ROWS[2]["text"], "score": 0.5}]},
    {"query": "how bees?", "pos": [ROWS[2]["text"]], "neg": [ROWS[0]["text"]], "pos_scores": [1], "neg_scores": [0.1]},
    {"query": "who stings?", "documents": [ROWS[3]["text"], ROWS[0]["text"]], "document_ids": ["d3", "d0"],
     "scores": [1.5, 0]},
    {"anchor": "what pulls?", "positive": ROWS[0]["text"], "negative": ROWS[2]["text"], "scores": [0.9, 0.1]},
    {"query": "what rises?", "docs": [ROWS[1]["text"], ROWS[0]["text"]], "labels": [2, 0], "logprobs": [-0.1, -0.2]},
    {"id": "7", "fields": {"text": ROWS[2]["text"]}, "metadata": {"document_id": "d2"},
     "responses": {"query": [{"value": "what dances?", "user": "u"}], "label": [{"value": "yes"}]}},
    {"document_id": "d4", "query": "what is fourth?", "label.responses": ["yes"], "status": "completed"},
    {"data": {"query": "what is seventh?", "document_id": "d6"},
     "annotations": [{"result": [{"from_name": "label", "value": {"choices": ["yes"]}}], "was_cancelled": False}]},
    {"annotation_id": 3, "lead_time": 2.5, "query": "what is eighth?", "document_id": "d7", "label": {"rating": 2}},
    {"question": "what is ninth?", "golden_contexts": [{"context_id": "d8", "data": {"text": ROWS[8]["text"]}}]},
    {"data": [{"title": "T", "paragraphs": [{"context": ROWS[3]["text"], "qas": [{"id": "9", "question": "what?"}]}]}]},
    {"queries": {"a": "what of five?"}, "corpus": {"d5": ROWS[5]["text"]}, "relevant_docs": {"a": ["d5"]}},
    {"examples": [{"query": "what of six?", "reference_contexts": [ROWS[6]["text"]]}]},
]  # fmt: skip
QUERY_TABLE = [{"document_id": row["_id"], "query": f"what, then, of {i}?"} for i, row in enumerate(ROWS)]
BEIR_QUERIES = [{"_id": f"q{i}", "text": f"how does {i} work?", "metadata": {}} for i in range(8)]
BEIR_QRELS = ("query-id\tcorpus-id\tscore\n" + "".join(f"q{i}\td{i}\t{i % 3}\n" for i in range(8))).encode()
BEIR_DOCUMENTS = [{k: v for k, v in row.items() if k != "queries"} for row in ROWS]
BEIR = {
    "corpus.jsonl": jsonl(BEIR_DOCUMENTS),
    "queries.jsonl": jsonl(BEIR_QUERIES),
    "qrels/test.tsv": BEIR_QRELS,
    "qrels/train.tsv": b"q1 0 d2 1\nq2 0 d3 0\n",
    "SOURCE.md": b"# Source\n\n## Licence\n\nCC0, our own.\n",
}
