"""A benchmark made of documents and judged queries that came in another form than the BEIR layout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from cdp.base.records import Document
from cdp.base.staging import staging
from cdp.base.workspace import Workspace, now
from cdp.benchmarks import manifests
from cdp.benchmarks.library import add_benchmark, list_names

Judged = Mapping[str, Mapping[str, Mapping[str, int]]]
"""{split: {query id: {document id: grade}}}"""


def make(
    workspace: Workspace,
    name: str,
    documents: Iterable[Document],
    queries: Mapping[str, str],
    judged: Judged,
    *,
    language: str = "",
    source: Mapping[str, Any],
    notes: tuple[str, ...] = (),
) -> str:
    """Store these documents, queries (id to text) and judgments as a benchmark; its name in the workspace.

    ``source`` says what it was made of and how, and is kept in its manifest. InputError where it is no benchmark, or
    another one has the name.
    """
    with staging(workspace.benchmarks) as folder:
        made = folder / "made"
        (made / "qrels").mkdir(parents=True)
        with open(made / "corpus.jsonl", "x", encoding="utf-8") as file:
            for document in documents:
                _line(file, {"_id": document.id, "title": document.title, "text": document.text})
        with open(made / "queries.jsonl", "x", encoding="utf-8") as file:
            for query, text in queries.items():
                _line(file, {"_id": query, "text": text})
        for split, qrels in judged.items():
            with open(made / "qrels" / f"{split}.tsv", "x", encoding="utf-8") as file:
                file.write("query-id\tcorpus-id\tscore\n")
                for query, grades in qrels.items():
                    file.writelines(f"{query}\t{document}\t{grade}\n" for document, grade in grades.items())
        manifests.write(made, manifests.Manifest(source=source, notes=notes, language=language, created=now()))
        return add_benchmark(made, workspace, name)


def free_name(workspace: Workspace, wanted: str) -> Iterable[str]:
    """``wanted``, then further names of its kind; whoever takes one that is there may find the same content in it."""
    yield wanted
    yield from (f"{wanted}-{number}" for number in range(2, len(list_names(workspace)) + 3))


def _line(file: Any, record: Mapping[str, Any]) -> None:
    file.write(json.dumps(record, ensure_ascii=False) + "\n")
