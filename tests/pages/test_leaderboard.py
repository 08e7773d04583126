"""The leaderboard on Compare: every run beside its start, what is hidden is said, and what people write stays."""

from __future__ import annotations

from typing import Any

import pytest

from cdp.base.workspace import Workspace
from cdp.services import naming, runs
from tests.services import test_board, test_runs
from tests.services.support import evaluation
from tests.services.test_runs import BEFORE, better, trained

pytestmark = pytest.mark.slow

query_set, runs_here = test_runs.query_set, test_board.runs_here


def table(at: Any) -> Any:
    return at.dataframe[0].value


def test_all_runs_stand_there_score_first_and_studies_and_bm25_among_them(runs_here: Workspace, open_page: Any) -> None:
    at = open_page("compare", project="all")
    assert not at.exception
    shown = table(at)
    assert list(shown.columns)[:3] == ["NDCG@10", "vs. start", "Run"]
    assert list(shown["Run"]) == [
        "diverse · Q/Doc 5 · 20 pairs · seed 7", "BM25", "diverse · Q/Doc 1 · 4 pairs · seed 0 · wiki",
        "paraphrase · Q/Doc 5 · 20 pairs · seed 7", "minilm",
    ]  # fmt: skip
    assert any("What all trained runs of this table share: minilm" in c.value for c in at.caption)
    assert any(c.value.startswith("5 runs, 5 rows.") for c in at.caption)


def test_a_leaked_run_is_not_the_first(runs_here: Workspace, open_page: Any) -> None:
    trained(runs_here, "training-9", "gone", better(0.7), counts={"leaked_queries": 40, "judged_queries": 40})
    at = open_page("compare", project="all")
    assert list(table(at)["Badges"])[-1].startswith("leaked")
    assert any("stand last" in c.value for c in at.caption)


def test_archived_and_filtered_rows_are_counted_and_one_switch_away(runs_here: Workspace, open_page: Any) -> None:
    evaluation(runs_here, "minilm", "second", BEFORE)
    runs.annotate(runs_here, ["training-1"], archived=True)
    at = open_page("compare", project="all")
    assert len(table(at)) == 4
    assert any("1 archived row is not shown. 1 row does not fit the filters." in c.value for c in at.caption)
    at.toggle(key="board_archived").set_value(True).run()
    assert len(table(at)) == 5
    at.text_input(key="board_search").set_value("paraphrase").run()
    assert len(table(at)) == 1
    assert any("5 rows do not fit the filters." in c.value for c in at.caption)


def test_chosen_runs_are_named_tagged_and_archived(runs_here: Workspace, open_page: Any) -> None:
    at = open_page("compare", project="all", retrievers=["training-1"])
    next(field for field in at.text_input if field.label == "Name").set_value("the one for the paper")
    next(field for field in at.text_input if field.label == "Tags").set_value("paper, kept")
    at.button(key="board_save").click().run()
    assert naming.list_annotations(runs_here)["training-1"].tags == ("paper", "kept")
    assert "the one for the paper" in list(table(at)["Run"])
    at.button(key="board_archive").click().run()
    assert not at.exception
    assert "the one for the paper" not in list(table(at)["Run"])
    assert naming.list_annotations(runs_here)["training-1"].archived
