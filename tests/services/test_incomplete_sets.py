"""A query set whose job did not end says so, and nothing is trained on it unasked: services hold that, not pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, append_jsonl, write_json
from cdp.corpus import read_documents, store
from cdp.jobs import list_jobs, load_spec
from cdp.query_sets import QuerySet
from cdp.services import completeness, queries, studies, training
from cdp.studies.config import StudyConfig
from cdp.training import plan as training_plan

JOB = "synthesis-20260101-000000-abcd-lost"


@pytest.fixture
def torn(workspace: Workspace, tmp_path: Path) -> QuerySet:
    """What a worker leaves that was killed with its supervisor: lines, and a manifest that knows of none."""
    path = tmp_path / "corpus.jsonl"
    rows = [{"_id": f"d{i}", "title": f"T{i}", "text": f"The mill number {i} grinds corn."} for i in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with read_documents(path) as result:
        corpus = store(result, "mills", workspace)
    spec = {"id": JOB, "kind": "synthesis", "name": "mills", "module": "cdp.workers.synthesis", "created": "2026-01-01",
            "config": {"corpus": corpus.id}, "launcher": "python", "device": {"kind": "cpu"}, "inputs": {}}  # fmt: skip
    write_json(workspace.job(JOB) / "spec.json", spec)
    write_json(workspace.job(JOB) / "status.json", {"phase": "running", "attempt": 1})
    made = query_sets.create(
        workspace,
        QuerySet(id="torn", name="Mills", corpus_id=corpus.id, corpus_hash=corpus.content_hash, method="diverse",
                 generator="template", per_doc=1, job_id=JOB),
    )  # fmt: skip
    lines = [{"document_id": f"d{i}", "position": i, "queries": [f"what does mill {i} grind"]} for i in range(3)]
    append_jsonl(workspace.query_set("torn") / "queries.jsonl", lines)
    return made


@pytest.fixture
def mini(workspace: Workspace) -> str:
    """A benchmark of three queries."""
    folder = workspace.benchmark("mini")
    (folder / "qrels").mkdir(parents=True)
    append_jsonl(folder / "corpus.jsonl", [{"_id": f"c{i}", "title": "", "text": f"mill {i}"} for i in range(3)])
    append_jsonl(folder / "queries.jsonl", [{"_id": f"q{i}", "text": f"which mill {i}"} for i in range(3)])
    lines = "".join(f"q{i}\tc{i}\t1\n" for i in range(3))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{lines}")
    return "mini"


def test_what_a_killed_job_left_is_counted_and_named_with_its_job(workspace: Workspace, torn: QuerySet) -> None:
    (listed,) = queries.list_query_sets(workspace)
    assert (listed.n_documents, listed.n_queries) == (3, 3)
    found = completeness.check(workspace, torn)
    assert found.label == "incomplete"
    assert found.name == "Mills (incomplete)"
    assert found.sentence == f"Mills is incomplete: its job was cut off ({JOB}), 3 documents with queries."
    assert found.next_step == f"Resume its job: jobs resume {JOB}."


def test_a_set_whose_job_was_deleted_says_that(workspace: Workspace, torn: QuerySet) -> None:
    (workspace.job(JOB) / "spec.json").unlink()
    assert "its job was deleted" in completeness.check(workspace, torn).sentence
    assert completeness.check(workspace, torn).next_step == "Write it again."


def test_a_finished_set_with_recorded_failures_is_whole(workspace: Workspace, torn: QuerySet) -> None:
    whole = query_sets.update(workspace, "torn", complete=True, n_documents=6, n_queries=6, n_failures=2)
    found = completeness.check(workspace, whole)
    assert (found.label, found.name, found.note) == ("complete", "Mills", "")
    completeness.require(workspace, ["torn"], allow_incomplete=False)


@pytest.mark.slow
@pytest.mark.usefixtures("held_jobs")
def test_no_door_to_training_takes_it_unasked(workspace: Workspace, torn: QuerySet, mini: str) -> None:
    config = TrainingConfig(query_set="Mills", retriever="static-minilm")
    refused = "Mills is incomplete: its job was cut off"
    with pytest.raises(ConfigError, match=refused):
        training.start(workspace, config)
    with pytest.raises(ConfigError, match=refused):
        studies.run(workspace, studies.sweep(workspace, config.replace(benchmark=mini), [1e-3, 1e-4]))
    assert list_jobs(workspace, ["training"]) == []
    begun = training.start(workspace, config, allow_incomplete=True)
    assert load_spec(workspace, begun.job_id).config["query_set"] == "torn"


@pytest.mark.slow
def test_a_reasoned_set_counts_too(workspace: Workspace, torn: QuerySet) -> None:
    query_sets.update(workspace, "torn", complete=True, n_documents=3, n_queries=3)
    query_sets.create(
        workspace, QuerySet(id="thought", name="Thought", corpus_id=torn.corpus_id, corpus_hash=torn.corpus_hash)
    )
    config = TrainingConfig(query_set="torn", retriever="static-minilm", weighting="ri", reasoning="thought")
    assert training_plan.trained_on(config) == ["torn", "thought"]
    with pytest.raises(ConfigError, match="Thought is incomplete"):
        training.start(workspace, config)


@pytest.mark.slow
def test_a_study_asks_too(workspace: Workspace, torn: QuerySet, mini: str) -> None:
    config = StudyConfig(query_sets="torn", benchmarks=mini, retrievers="static-minilm", per_doc="1")
    plan = studies.plan(workspace, config)
    assert plan.notes[0].startswith("Mills is incomplete: its job was cut off")
    with pytest.raises(ConfigError, match="Mills is incomplete"):
        studies.run(workspace, config)
    assert list_jobs(workspace, ["study"]) == []
