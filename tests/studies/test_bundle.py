"""A study as a zip: every score, with what it was made of, the same bytes each time; and what its worker writes."""

from __future__ import annotations

import gzip
import io
import json
import zipfile

import pytest

from cdp.base.worker import Job
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.principle import WEIGHTING
from cdp.services import studies
from tests.studies.conftest import study_job


@pytest.mark.slow
def test_a_study_runs_reports_pools_and_bundles_with_its_facts(
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
    row = next(row for row in report.rows if row.per_doc == 3 and row.weighting == "none")
    assert row.queries["self_bleu"] is not None
    assert row.queries["overlap"] == pytest.approx(1.0)  # each query is four words of its document
    assert next(row for row in report.rows if row.per_doc == 1).queries["self_bleu"] is None
    assert any(model.title.startswith("CW-weighted minus equal weights, cw@2") for model in report.pooled)
    assert [m.title for m in studies.pool(workspace, ["study-1"])] == [m.title for m in report.pooled]
    assert {m.title.partition(",")[0] for m in studies.pool(workspace, ["study-1"], per_doc=1)} == {
        "CW-weighted minus equal weights"
    }
    weighted = next(g for g in report.of(WEIGHTING) if g.per_doc == 3)
    cells = [(weighted.retriever, weighted.source, 3, name, "") for name in ("cw@2", "none")]
    tested = studies.contrast(workspace, "study-1", weighted.benchmark, dict(zip(cells, (1.0, -1.0), strict=True)))
    assert tested is not None
    assert tested.mean == pytest.approx(weighted.points)
    assert studies.contrast(workspace, "study-1", weighted.benchmark, {(*cells[0][:3], "cw@9", ""): 1.0}) is None

    content = studies.bundle(workspace, "study-1", {"report.html": b"<p>"})
    assert studies.bundle(workspace, "study-1", {"report.html": b"<p>"}) == content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert "criteria: The slope." in archive.read("plan.yaml").decode()
        scores = gzip.decompress(archive.read("scores.csv.gz")).decode().splitlines()
        provenance = json.loads(archive.read("provenance.json"))
        settings = json.loads(archive.read("settings.json"))
        assert archive.read("report.html") == b"<p>"
    trainings = 2 * 2 * 2 + 1
    assert len(scores) - 1 == trainings * 3 * 12
    assert {b["name"] for b in provenance["benchmarks"]} == set(benchmarks)
    assert all(b["hash"] for b in provenance["benchmarks"])
    assert provenance["corpora"][0]["written_by"] == "unknown"
    assert provenance["versions"]["torch"]
    assert len(settings) == trainings
