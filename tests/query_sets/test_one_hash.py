"""A query set has one content hash, and what was made from it leads back to it by that hash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import MetricsConfig, TrainingConfig
from cdp.base.workspace import Workspace, append_jsonl, read_json
from cdp.corpus import read_documents, store
from cdp.query_sets import QuerySet
from cdp.services import jobs
from cdp.training.pairs import load_pairs


@pytest.fixture
def imported(workspace: Workspace, tmp_path: Path) -> QuerySet:
    documents = [{"_id": f"d{i}", "text": f"the wheel of mill number {i} turns"} for i in range(4)]
    file = tmp_path / "documents.jsonl"
    file.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    with read_documents(file) as result:
        corpus = store(result, "mills", workspace)
    asked = [(f"d{i}", [f"which mill is number {i}", f"what turns in mill {i}"]) for i in range(4)]
    return query_sets.import_queries(asked, workspace, corpus.id, "asked").query_set


@pytest.mark.slow
def test_job_inputs_and_training_pairs_name_a_set_by_the_same_hash(workspace: Workspace, imported: QuerySet) -> None:
    config = TrainingConfig(query_set=imported.id, retriever="static-minilm", gpus=0, batch_size=4)
    job = workspace.job(jobs.start(workspace, "training", config))
    measuring = workspace.job(jobs.start(workspace, "metrics", MetricsConfig(query_set=imported.id, human=imported.id)))
    named = {read_json(folder / "spec.json")["inputs"]["query_set_hash"] for folder in (job, measuring)}
    assert named | {load_pairs(workspace, imported.id).query_set.content_hash} == {imported.content_hash}


def test_an_incomplete_set_is_named_by_what_is_there(workspace: Workspace, imported: QuerySet) -> None:
    lines = list(query_sets.iter_lines(workspace, imported.id))
    begun = query_sets.create(workspace, QuerySet("begun", "begun", imported.corpus_id, imported.corpus_hash))
    append_jsonl(query_sets.files(workspace, "begun").queries, lines[:2])
    partly = query_sets.content_hash(workspace, begun)
    assert load_pairs(workspace, "begun").query_set.content_hash == partly
    append_jsonl(query_sets.files(workspace, "begun").queries, lines[2:])
    assert partly != query_sets.content_hash(workspace, begun) == imported.content_hash
