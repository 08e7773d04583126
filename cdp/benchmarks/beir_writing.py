"""Writing a benchmark in BEIR layout: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cdp.base.records import Document


def write_beir(
    folder: Path,
    split: str,
    documents: Iterable[Document],
    queries: Iterable[Mapping[str, Any]],
    qrels: Mapping[str, Mapping[str, int]],
) -> None:
    """Write one split into a folder that holds none of the files yet. ``queries`` are lines with ``_id`` and ``text``,
    ``qrels`` {query: {document: grade}} in the order of the file."""
    (folder / "qrels").mkdir(parents=True)
    with open(folder / "corpus.jsonl", "x", encoding="utf-8") as file:
        for document in documents:
            record = {"_id": document.id, "title": document.title, "text": document.text}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    with open(folder / "queries.jsonl", "x", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in queries)
    with open(folder / "qrels" / f"{split}.tsv", "x", encoding="utf-8") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for query, grades in qrels.items():
            file.writelines(f"{query}\t{document}\t{grade}\n" for document, grade in grades.items())
