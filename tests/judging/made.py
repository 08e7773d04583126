"""A judged benchmark without a job: files as the worker writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.benchmarks import judged, library, manifests
from cdp.benchmarks.judged import Grade, Pool
from cdp.corpus import CorpusManifest, read_documents, store

# {(query number, document number): grade}
Grades = Callable[[int, int], int]


def make(workspace: Workspace, grade: Grades, *, n_queries: int = 30, per_query: int = 4, name: str = "made") -> Path:
    """A benchmark of ``n_queries`` with ``per_query`` pooled documents each, of two retrievers in opposite order."""
    documents = [Document(f"d{q}-{d}", f"text {d} on subject {q}") for q in range(n_queries) for d in range(per_query)]
    queries = {f"q{q}": f"what of subject {q}" for q in range(n_queries)}
    pool: Pool = {
        f"q{q}": {f"d{q}-{d}": {"up": d + 1, "down": per_query - d} for d in range(per_query)} for q in range(n_queries)
    }
    grades = [Grade(f"q{q}", f"d{q}-{d}", grade(q, d), "because") for q in range(n_queries) for d in range(per_query)]
    by_query = {query: {g.document: g.grade for g in grades if g.query == query} for query in queries}
    source = {"kind": judged.KIND, "judge": "a-model", "written_by": "people"}
    manifest = manifests.Manifest(source=source, relevant_from=2, self_match=False, language="en")
    library.make(workspace, name, documents, queries, {judged.SPLIT: by_query}, manifest)
    folder = workspace.benchmark(name)
    judged.write_pool(folder, pool)
    judged.write_grades(folder, grades)
    return folder


def corpus_of(workspace: Workspace, folder: Path, name: str, texts: Mapping[str, str]) -> CorpusManifest:
    """A corpus of these documents, by their ids."""
    path = folder / f"{name}.jsonl"
    rows = [{"_id": document, "title": "", "text": text} for document, text in texts.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with read_documents(path) as result:
        return store(result, name, workspace)


def people_alone(folder: Path) -> Path:
    """Make people alone the judges of a benchmark: without labels it has no judgments."""
    manifest = manifests.read(folder)
    manifests.write(folder, replace(manifest, source={**manifest.source, "judge": ""}))
    judged.publish(folder)
    return folder
