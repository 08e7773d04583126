"""A difference that a model judged is uncalibrated until people label whole queries; then it stands corrected."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cdp.base.config import ResultImportConfig
from cdp.base.workspace import Workspace
from cdp.benchmarks import judged
from cdp.cli import main
from cdp.results import differences
from cdp.results.board import ResultRow
from cdp.services import jobs, judging
from tests.judging.made import make

pytestmark = pytest.mark.slow

N = 60


def grade(query: int, document: int) -> int:
    """The model prefers what the retriever ``down`` ranks first, in half of the queries."""
    return 3 if document == (3 if query % 2 else 0) else 0


@pytest.fixture
def folder(workspace: Workspace, tmp_path: Path, jobs_here: None) -> Path:
    made = make(workspace, grade, n_queries=N)
    for name, order in (("up", (0, 1, 2, 3)), ("down", (3, 2, 1, 0))):
        run = tmp_path / f"{name}.txt"
        lines = [f"q{q} Q0 d{q}-{d} {rank} {10 - rank} {name}" for q in range(N) for rank, d in enumerate(order)]
        run.write_text("\n".join(lines), encoding="utf-8")
        job = jobs.start(workspace, "import", ResultImportConfig(path=str(run), retriever=name, benchmark="made"))
        assert jobs.show(workspace, job).state == "finished"
    return made


def row_of(workspace: Workspace) -> ResultRow:
    [row] = [row for row in differences.compare(workspace, "up").rows if row.retriever_id == "down"]
    return row


def label(folder: Path, n: int) -> None:
    """People label the first ``n`` queries of the sample: document 0 answers, in each fifth query document 3."""
    pool = judged.read_pool(folder)
    for query in judged.sampled(pool)[:n]:
        right = "-0" if int(query[1:]) % 5 else "-3"
        judged.add_labels(
            folder, query, {d: 3 if d.endswith(right) else 0 for d in judged.to_label(pool, query)}, "Ada"
        )


def test_labels_correct_what_the_model_says(
    workspace: Workspace, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = row_of(workspace)
    assert before.difference == pytest.approx(0.0, abs=1e-9), "the model sees no difference"
    assert [badge.word for badge in before.badges] == ["judged by a-model"]
    assert before.calibration is not None
    assert before.calibration.sentence == (
        "Uncalibrated, judged by a-model alone: 0 of the 10 labelled queries that a correction needs."
    )
    label(folder, 20)
    row = row_of(workspace)
    assert row.calibration is not None
    found = row.calibration.corrected
    assert found is not None
    truth = 0.6 * -100 * (1 - 1 / np.log2(5))  # ``down`` has the answer at rank 4, in each fifth query at rank 1
    assert found.interval[0] <= truth <= found.interval[1] < 0
    assert (found.n_labelled, found.n_queries) == (20, N)
    assert row.calibration.sentence.startswith("Corrected by 20 queries of people: ")
    assert row.difference == before.difference, "the model's own figure stays beside it"
    assert main(["results", "compare", "--baseline", "up", "--json"]) == 0
    [said] = [r for r in json.loads(capsys.readouterr().out)["rows"] if r["retriever_id"] == "down"]
    assert said["calibration"]["state"] == "corrected"
    assert 0 < said["calibration"]["more_labels"]["4"] < said["calibration"]["more_labels"]["2"]


def test_a_retriever_outside_of_the_pool_is_not_corrected_before_its_documents_are_labelled(
    workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    label(folder, 12)
    run = tmp_path / "late.txt"
    # The first document of the next query: in the corpus, in no pool of this query.
    run.write_text("\n".join(f"q{q} Q0 d{(q + 1) % N}-0 1 1 late" for q in range(N)), encoding="utf-8")
    job = jobs.start(workspace, "import", ResultImportConfig(path=str(run), retriever="late", benchmark="made"))
    assert jobs.outcome(workspace, job)["notes"] == [
        "60 documents of the first ten have no judgment and count 0. Have them judged: benchmarks judge --benchmark "
        "NAME --runs JOB."
    ]
    [row] = [row for row in differences.compare(workspace, "up").rows if row.retriever_id == "late"]
    assert row.calibration is not None
    assert row.calibration.unlabelled == 12
    assert row.calibration.sentence.endswith("12 documents of the first ten have no label by people.")
    assert differences.unjudged(workspace, differences.compare(workspace, "up")) == [job]
    again = judging.repeated(workspace, "made", [job])
    assert len(judging.to_judge(workspace, again)) == N
    assert (again.benchmark, again.runs) == ("made", (job,))
