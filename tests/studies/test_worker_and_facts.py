"""What a study's worker writes: facts of the judged queries, provenance, and the pooled models."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp import catalog
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.benchmarks import load_benchmark
from cdp.services import studies
from cdp.studies import records
from cdp.workers.study import families
from tests.studies.conftest import study_job


@pytest.mark.slow
def test_a_study_runs_reports_and_pools_with_its_facts(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    from cdp.workers.study import main

    folder = study_job(
        workspace,
        "study-1",
        query_set,
        benchmarks,
        retrievers=tiny,
        weightings="none, cw@2",
        criteria="The slope.",
        seeds="0",
    )
    main(Job(folder))
    about = read_json_or_none(folder / "results" / "about.json")
    assert isinstance(about, dict)
    for described in about["benchmarks"]:
        assert set(described["facts_of"]) == set(described["cw_of"])
        assert all(0 <= facts["overlap"] <= 1 and facts["words"] >= 2 for facts in described["facts_of"].values())
        assert described["in_domain_of"] == []
    report = studies.report(workspace, "study-1")
    assert any(model.title.startswith("CW-weighted minus equal weights, cw@2") for model in report.pooled)
    assert about["corpora"][0]["written_by"] == "unknown: who wrote them was not recorded"
    assert about["sources"][0]["written_by"] == about["corpora"][0]["written_by"]
    assert not {"generator", "model", "base_url"} & {*about["config"], *report.to_dict()["config"]}
    assert about["versions"]["torch"]
    assert all(b["hash"] for b in about["benchmarks"])
    _run_and_first_rank_are_kept(workspace, folder)


def _run_and_first_rank_are_kept(workspace: Workspace, folder: Path) -> None:
    """Of every arm and query the first ten documents, and whether the first is relevant, as judgments say it."""
    for record in records.list_records(folder):
        for evaluation in record["evaluations"].values():
            first = records.firsts(evaluation)
            assert first is not None
            judged = load_benchmark(workspace.benchmarks / evaluation["benchmark"]).qrels
            right = [int(judged[query].get(documents[0], 0) > 0) for query, documents in first.items()]
            assert right == evaluation["p@1"]
            assert all(len(set(documents)) == 10 for documents in first.values())
    scored = catalog.query(workspace, "SELECT DISTINCT measure FROM scores ORDER BY measure").rows
    assert scored == [("ndcg@10",), ("p@1",)]


def test_families_by_source_and_by_shared_documents() -> None:
    documents = {"a": set(range(100)), "a2": set(range(90, 130)), "b": set(range(500, 600)), "c": set(range(125, 400))}
    sources = {"a": "a", "a2": "a2", "b": "b", "c": "c"}
    # c shares 5 of the 40 documents of a2, which is 12.5% of the smaller one.
    assert families(sources, documents) == {"a": "a", "a2": "a", "b": "b", "c": "a"}
    assert families({"x dev": "x", "x test": "x"}, {"x dev": {1}, "x test": {2}}) == {"x dev": "x", "x test": "x"}
