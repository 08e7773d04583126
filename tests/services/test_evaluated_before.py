"""Whether a result with these settings is there already, and what has to be said beside a score."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.config import EvaluationConfig
from cdp.base.workspace import Workspace
from cdp.results import board, differences
from cdp.retrievers.encode import HALF_PRECISION
from cdp.services import benchmarks, jobs
from cdp.services import evaluation as service
from tests.benchmarks.folders import QRELS, write_benchmark
from tests.services.support import evaluation

pytestmark = pytest.mark.slow

SCORES = {"q1": 0.5, "q2": 0.0, "q3": 1.0}
AS_IT_RAN = {"max_length": None, "top_k": 100, "precision": "fp16"}


@pytest.fixture
def judgments(workspace: Workspace, tmp_path: Path) -> str:
    """The hash of a benchmark called small that is in the workspace."""
    return benchmarks.add(workspace, write_benchmark(tmp_path / "small")).content_hash


def test_a_result_is_one_only_with_the_same_settings_and_tells_its_oddities(
    workspace: Workspace, judgments: str
) -> None:
    there = evaluation(workspace, "minilm", "small", SCORES, judgments=judgments, settings=AS_IT_RAN)
    for setting, value, found in (
        ("precision", "auto", True),
        ("precision", "fp32", False),
        ("top_k", 1000, False),
        ("max_length", 64, False),
        ("protocol", "paper", False),
        ("batch_size", 7, True),
    ):
        config = {"retriever": "minilm", "benchmark": "small", "split": "test", setting: value}
        existing = service.existing(workspace, EvaluationConfig.from_dict(config))
        assert existing == (there if found else None), (setting, value)

    counts = {"judged_queries": 3, "judged_without_results": 1}
    job = evaluation(workspace, "bm25", "small", SCORES, judgments=judgments, counts=counts)
    found = differences.compare(workspace, "bm25")
    assert board.remarks(found.rows) == [
        "small (BM25): Nothing was retrieved for 1 of 3 judged queries; they count 0.",
        f"small (minilm): {HALF_PRECISION}",
    ]
    assert jobs.outcome(workspace, job)["notes"] == ["Nothing was retrieved for 1 of 3 judged queries; they count 0."]


def test_what_is_odd_of_a_benchmark_is_told_once_for_all_of_its_results(workspace: Workspace, tmp_path: Path) -> None:
    folder = write_benchmark(workspace.benchmark("odd"), qrels={"test": QRELS + "q1\tgone\t1\n"})
    (info,) = benchmarks.list_benchmarks(workspace)
    for retriever in ("bm25", "minilm"):
        evaluation(workspace, retriever, "odd", SCORES, judgments=info.content_hash)
    found = differences.compare(workspace, "bm25")
    (remark,) = board.remarks(found.rows)
    assert remark.startswith("odd: test.tsv: The judgments name 1 document id")
    (folder / "qrels" / "test.tsv").write_text(QRELS)
    assert board.remarks(differences.compare(workspace, "bm25").rows) == []
