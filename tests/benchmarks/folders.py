"""Small benchmarks in BEIR layout, written for a test."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def jsonl(records: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


DOCUMENTS = [
    {"_id": "d1", "title": "Tides", "text": "The moon pulls the water of the sea towards itself."},
    {"_id": "d2", "title": "", "text": "Bakers let dough rise before it goes into the oven."},
    {"_id": "d3", "title": "Bees", "text": "A dancing bee tells the hive where flowers stand."},
    {"_id": "d4", "title": "Glass", "text": "Sand melts into glass when the furnace is hot enough."},
]
QUERIES = [
    {"_id": "q1", "text": "Why does the sea rise and fall with the moon?"},
    {"_id": "q2", "text": "How do bees tell each other about flowers?"},
    {"_id": "q3", "text": "What is glass made of?"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td3\t1\nq3\td4\t1\n"


def write_benchmark(
    folder: Path,
    *,
    documents: Iterable[Mapping[str, Any]] = DOCUMENTS,
    queries: Iterable[Mapping[str, Any]] = QUERIES,
    qrels: Mapping[str, str] | None = None,
    compressed: bool = False,
) -> Path:
    """A benchmark folder; ``qrels`` maps a split to the text of its file."""
    (folder / "qrels").mkdir(parents=True)
    for name, records in (("corpus", documents), ("queries", queries)):
        data = jsonl(records).encode("utf-8")
        if compressed:
            (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(data))
        else:
            (folder / f"{name}.jsonl").write_bytes(data)
    for split, text in (qrels or {"test": QRELS}).items():
        (folder / "qrels" / f"{split}.tsv").write_text(text, encoding="utf-8")
    return folder
