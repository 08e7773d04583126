"""Comparisons and reports count queries that share a document as one, say so, and star nothing below ten groups."""

from __future__ import annotations

import csv
import io
import json
import shutil

import numpy as np
import pytest

from cdp.base.workspace import Workspace
from cdp.cli import main
from cdp.results import paper
from cdp.services import studies
from cdp.studies.report import build
from cdp.studies.text import to_markdown
from tests.benchmarks.folders import write_benchmark
from tests.services.support import Scenarios, evaluation
from tests.services.test_decide import N_JUDGED, diverse_helps, run_study, sets_of, task
from tests.studies.support import made, study

__all__ = ["task"]

pytestmark = pytest.mark.slow

QUERIES = [f"q{i}" for i in range(60)]
# How many documents the 60 queries are about.
DOCUMENTS = {"alone": 60, "shared": 12, "few": 6}


def document_of(query: str, documents: int) -> int:
    return int(query[1:]) % documents


def fill(workspace: Workspace) -> dict[str, list[str]]:
    random = np.random.default_rng(0)
    of_document, own = random.normal(0.15, 0.1, 60), random.normal(0, 0.05, 60)
    ids = {}
    for name, n in DOCUMENTS.items():
        rows = "".join(f"{query}\td{document_of(query, n)}\t1\n" for query in QUERIES)
        write_benchmark(
            workspace.benchmarks / name,
            documents=[{"_id": f"d{i}", "text": f"Text {i}."} for i in range(n)],
            queries=[{"_id": query, "text": f"Question {query}?"} for query in QUERIES],
            qrels={"test": f"query-id\tcorpus-id\tscore\n{rows}"},
        )
        gain = {q: float(of_document[document_of(q, n)] + own[i]) for i, q in enumerate(QUERIES)}
        ids[name] = [
            evaluation(workspace, "base", name, dict.fromkeys(QUERIES, 0.4)),
            evaluation(workspace, "other", name, {query: 0.4 + by for query, by in gain.items()}),
        ]
    return ids


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Scenarios:
    return Scenarios(Workspace(tmp_path_factory.mktemp("units") / "workspace"), fill)


def test_queries_of_a_document_are_one_unit_in_every_form(scenarios: Scenarios) -> None:
    comparison = scenarios.compare("shared")
    row = comparison.rows[1]
    assert (row.n_queries, row.n_clusters) == (60, 12)
    gains = np.array([comparison.scores[row.evaluation_id][q] - 0.4 for q in QUERIES]) * 100
    means = np.array([gains[i::12].mean() for i in range(12)])
    reach = 2.201 * means.std(ddof=1) / 12**0.5  # Student's t with 11 degrees of freedom
    assert (row.low, row.high) == pytest.approx((means.mean() - reach, means.mean() + reach), rel=1e-3)
    assert row.significant
    note = paper.notes(comparison)[0]
    assert "shared 60 in 12 groups" in note
    assert "fewer than 10 groups" in note
    assert "60 queries in 12 groups" in paper.test_line(comparison)
    (_, exported) = csv.DictReader(io.StringIO(paper.write(comparison, "csv")))
    assert exported["n_clusters"] == "12"


def test_below_ten_groups_nothing_is_significant(scenarios: Scenarios) -> None:
    row = scenarios.compare("few").rows[1]
    assert row.p_holm is not None
    assert row.p_holm < 0.05
    assert not row.significant
    assert not any(cell.dagger for _, cells in paper.paper_table(scenarios.compare("few")).rows for cell in cells)


def test_groups_are_named_only_where_queries_share_documents(scenarios: Scenarios) -> None:
    comparison = scenarios.compare("alone")
    assert comparison.rows[1].n_clusters == 60
    assert "group" not in paper.test_line(comparison) + "".join(paper.notes(comparison))


def test_the_command_says_the_groups(
    scenarios: Scenarios, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_WORKSPACE", str(scenarios.workspace.root))
    assert main(["results", "compare", "--baseline", "base", "--benchmark", "shared"]) == 0
    assert "60 in 12 groups" in capsys.readouterr().out


def test_a_study_counts_them_as_its_worker_wrote_them_down() -> None:
    def truth(benchmark: str, source: str, per_doc: int, weighting: str) -> float:
        return 5.0

    about, records = made(truth)
    alone = study(truth)
    ids = records[0]["evaluations"]["place-simple"]["query_ids"]
    for number, facts in enumerate(about["benchmarks"]):
        # The first stands alone, the second in groups of ten, the third in eight groups.
        facts["units_of"] = {} if number == 0 else {q: int(q[1:]) // (10 if number == 1 else 25) for q in ids}
    report = build("study-1", "made up", "finished", json.loads(json.dumps(about)), records)
    by_name = {name: [g for g in report.gains if g.benchmark == name] for name in ("simple", "medium", "hard")}
    assert [{g.n_clusters for g in of} for of in by_name.values()] == [{200}, {20}, {8}]
    before = [(g.low, g.high, g.p) for g in alone.gains if g.benchmark == "simple"]
    assert [(g.low, g.high, g.p) for g in by_name["simple"]] == before
    assert any(g.significant for g in by_name["medium"])
    assert not any(g.significant for g in by_name["hard"])
    assert "200 in 20 groups" in to_markdown(report)


def test_a_report_takes_the_groups_from_the_benchmark_as_it_is_now_or_says_that_it_cannot(
    workspace: Workspace, task: dict[str, str]
) -> None:
    study = run_study(workspace, sets_of(task), diverse_helps)
    folder = workspace.benchmark("tales")

    def judged_in(n_groups: int) -> None:
        rows = "".join(f"q{i}\td{i % n_groups}\t1\n" for i in range(N_JUDGED))
        (folder / "qrels" / "dev.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")

    judged_in(12)
    report = studies.report(workspace, study)
    assert {gain.n_clusters for gain in report.gains} == {12}
    assert not any("one by one" in limit for limit in report.limits)

    # Its worker wrote the groups down, and grades came later: Decide's intervals followed them, the report's did not.
    path = workspace.job(study) / "results" / "about.json"
    about = json.loads(path.read_text())
    about["benchmarks"][0]["units_of"] = {f"q{i}": i % 12 for i in range(N_JUDGED)}
    path.write_text(json.dumps(about))
    judged_in(6)
    assert {gain.n_clusters for gain in studies.report(workspace, study).gains} == {6}

    del about["benchmarks"][0]["units_of"]
    path.write_text(json.dumps(about))
    shutil.rmtree(folder)
    without = studies.report(workspace, study)
    assert {gain.n_clusters for gain in without.gains} == {N_JUDGED}
    assert any("Queries count one by one: which" in limit for limit in without.limits)
