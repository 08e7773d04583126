"""What a study's worker writes: facts of the judged queries, provenance, and the pooled models."""

from __future__ import annotations

import pytest

from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.principle import WEIGHTING
from cdp.services import studies
from cdp.studies import records
from cdp.studies.plan import Cell
from cdp.studies.report import read_study
from reproduction.evidence import contrast
from tests.studies.conftest import study_job


@pytest.mark.slow
def test_a_study_runs_reports_and_pools_with_its_facts(
    workspace: Workspace, query_set: str, benchmarks: list[str], tiny: str
) -> None:
    from cdp.workers.study import main

    folder = study_job(
        workspace, "study-1", query_set, benchmarks, retrievers=tiny, weightings="none, cw@2", criteria="The slope."
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
    weighted = next(g for g in report.of(WEIGHTING) if g.per_doc == 3)
    same = Cell(weighted.retriever, weighted.source, 3, held=weighted.held, rate=weighted.rate)
    cells = [same._replace(weighting=name) for name in ("cw@2", "none")]
    scores = read_study("study-1", about, list(records.list_records(folder))).scores
    tested = contrast(scores, weighted.benchmark, dict(zip(cells, (1.0, -1.0), strict=True)))
    assert tested is not None
    assert tested.mean == pytest.approx(weighted.points)
    assert contrast(scores, weighted.benchmark, {same._replace(weighting="cw@9"): 1.0}) is None

    assert about["corpora"][0]["written_by"] == "unknown: who wrote them was not recorded"
    assert about["sources"][0]["written_by"] == about["corpora"][0]["written_by"]
    assert not {"generator", "model", "base_url"} & {*about["config"], *report.to_dict()["config"]}
    assert about["versions"]["torch"]
    assert all(b["hash"] for b in about["benchmarks"])
