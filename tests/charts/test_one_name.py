"""A condition has one name: in a study's report, on Compare, among Decide's options and in every figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.results import arms, board, differences, numbers
from cdp.services import decide, studies
from cdp.studies import advice, target_queries
from cdp.studies.text import tables
from tests.charts import small_study

pytestmark = pytest.mark.slow

NAMES = {
    "tiny", "tiny · diverse × 1", "tiny · diverse × 3", "tiny · diverse × 5", "tiny · paraphrase × 1",
    "tiny · paraphrase × 3", "tiny · diverse × 3 · equal pairs", "tiny · diverse × 3 · cw",
    "tiny · diverse × 3 · ri · multi-query", "tiny · diverse × 3 · multi-query",
    "rated · diverse × 1 · learning rate 1e-2", "rated · diverse × 1 · learning rate 2e-2",
}  # fmt: skip


def test_report_compare_decide_and_evidence_say_the_same(workspace: Workspace, tmp_path: Path) -> None:
    small_study.make(workspace, tmp_path)

    report = studies.report(workspace, "study-1")
    head, rows, _ = tables(report)["NDCG@10"]
    assert {row[head.index("Training")] for row in rows} == {name for name in NAMES if "rate" not in name}

    evaluations = board.list_evaluations(workspace)
    assert {row.retriever for row in board.list_rows(workspace, evaluations)} == NAMES
    named = differences.compare(workspace, "tiny", ["tiny · diverse × 5"], evaluations=evaluations)
    assert {row.retriever for row in named.rows} == {"tiny", "tiny · diverse × 5"}

    figures = numbers.methods_by_benchmark(arms.own(workspace, evaluations))
    assert {row["arm"] for row in figures} == NAMES

    answer = decide.decide(workspace, target=target_queries.profile_benchmark(workspace, "long"))
    options, _ = advice.list_options(workspace, answer, "")
    plain = {name for name in NAMES if not name.endswith(("cw", "multi-query", "e-2"))}
    assert {option.name for option in options} == plain
    assert {option["name"] for option in answer.to_dict()["options"]} == plain
