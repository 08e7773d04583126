"""What writes or imports a query set measures it; later reads take what was kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.base.config import SynthesisConfig
from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.services import corpora, jobs, metrics, queries

pytestmark = pytest.mark.slow


def kept_once(workspace: Workspace, name: str) -> None:
    """The set has its measures, and reading them writes nothing."""
    query_set = queries.show(workspace, name)
    (kept,) = (workspace.query_set(query_set.id) / "measures").glob("*.json")
    before = kept.stat().st_mtime_ns
    assert metrics.quick(workspace, query_set.id).by_per_doc[3] > 0
    assert kept.stat().st_mtime_ns == before


def test_the_worker_that_writes_queries_measures_them(filled: Workspace, in_process: Callable[[], list[str]]) -> None:
    corpus = corpora.list_corpora(filled)[0].id
    job = jobs.start(filled, "synthesis", SynthesisConfig.from_dict({"corpus": corpus, "per_doc": 3, "name": "three"}))
    assert in_process() == [job]
    kept_once(filled, "three")


def test_the_import_measures_what_it_brought_in(filled: Workspace, tmp_path: Path) -> None:
    corpus = corpora.list_corpora(filled)[0].id
    documents = looking.page(filled, corpus, 0, 5)
    rows = [
        {"document_id": d.id, "query": f"when does {d.title} turn for the {i}th time"}
        for d in documents
        for i in range(3)
    ]
    asked = tmp_path / "asked.jsonl"
    asked.write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries.import_file(filled, asked, corpus, name="asked")
    kept_once(filled, "asked")
