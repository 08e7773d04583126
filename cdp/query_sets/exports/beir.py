"""BEIR: a folder with the three kinds of file that benchmarks have."""

from __future__ import annotations

import json
from pathlib import Path

from cdp.query_sets.exports.base import Export, ExportSelection


def write(selection: ExportSelection, target: Path) -> int:
    """A folder with ``corpus.jsonl`` (the documents that have queries), ``queries.jsonl`` and ``qrels/train.tsv``."""
    (target / "qrels").mkdir(parents=True)
    n = 0
    with (
        open(target / "corpus.jsonl", "w", encoding="utf-8") as corpus,
        open(target / "queries.jsonl", "w", encoding="utf-8") as queries,
        open(target / "qrels" / "train.tsv", "w", encoding="utf-8") as qrels,
    ):
        qrels.write("query-id\tcorpus-id\tscore\n")
        for document, texts in selection.pairs():
            record = {"_id": document.id, "title": document.title, "text": document.text}
            corpus.write(json.dumps(record, ensure_ascii=False) + "\n")
            for rank, text in enumerate(texts, start=1):
                query_id = f"{document.id}-{rank}"
                queries.write(json.dumps({"_id": query_id, "text": text}, ensure_ascii=False) + "\n")
                qrels.write(f"{query_id}\t{document.id}\t1\n")
                n += 1
    return n


EXPORT = Export(
    "beir", "BEIR", "A folder with corpus.jsonl, queries.jsonl and qrels/train.tsv.", "-beir", write, order=10
)
