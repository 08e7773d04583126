"""A small workspace to train in: twelve documents, three queries each, one content twice under two ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdp import query_sets
from cdp.base.workspace import Workspace, append_jsonl, write_json
from cdp.corpus import read_documents, store
from cdp.query_sets import QuerySet

TOPICS = (
    "glacier", "volcano", "harbour", "orchard", "telescope", "bakery", "railway", "lighthouse", "beehive", "quarry",
    "monsoon", "violin",
)  # fmt: skip


@pytest.fixture
def query_set(workspace: Workspace, tmp_path: Path) -> str:
    """The id of a query set with 13 documents (12 distinct contents) and 3 queries each."""
    documents = [
        {"_id": f"d{i}", "title": topic, "text": f"all about the {topic} and its {topic[::-1]}"}
        for i, topic in enumerate(TOPICS)
    ]
    documents.append({**documents[0], "_id": "twin"})
    source = tmp_path / "documents.jsonl"
    source.write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")
    with read_documents(source) as result:
        corpus = store(result, "small", workspace)
    write_queries(
        workspace,
        "small-queries",
        corpus.id,
        {d["_id"]: [f"what is a {d['title']}", f"{d['title']} facts", f"why {d['title']}"] for d in documents},
    )
    return "small-queries"


def write_queries(workspace: Workspace, query_set_id: str, corpus_id: str, queries: dict[str, list[str]]) -> None:
    """Write a query set as it lies on disk."""
    query_sets.create(workspace, QuerySet(query_set_id, query_set_id, corpus_id, "", complete=True))
    path = query_sets.files(workspace, query_set_id).queries
    path.touch()
    lines = enumerate(queries.items())
    append_jsonl(path, [{"document_id": d, "position": i, "queries": q} for i, (d, q) in lines])
    query_sets.update(workspace, query_set_id, content_hash=query_sets.count(path).content_hash)


def write_benchmark(workspace: Workspace, name: str, **splits: range) -> Path:
    """A benchmark over the twelve topics, in BEIR layout; each split judges the queries of these numbers."""
    folder = workspace.benchmark(name)
    (folder / "qrels").mkdir(parents=True)
    for file, lines in (
        ("corpus", [{"_id": f"d{i}", "title": "", "text": f"all about the {t}"} for i, t in enumerate(TOPICS)]),
        ("queries", [{"_id": f"q{i}", "text": f"tell me of a {t}"} for i, t in enumerate(TOPICS)]),
    ):
        (folder / f"{file}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for split, numbers in splits.items():
        judged = "".join(f"q{i}\td{i}\t1\n" for i in numbers)
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
    return folder


def write_job(workspace: Workspace, job_id: str, **config: Any) -> Path:
    """A job folder as a submitter leaves it."""
    folder = workspace.job(job_id)
    write_json(folder / "spec.json", {"id": job_id, "kind": "training", "name": job_id, "config": config})
    return folder
