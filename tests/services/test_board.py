"""The leaderboard: every run is a row beside its own start, nothing goes unsaid, and what people wrote stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cdp import catalog
from cdp.base.errors import WorkspaceError
from cdp.base.workspace import Workspace, write_json
from cdp.services import leaderboard as boards
from cdp.services import naming, projects, results, runs
from tests.cli.support import answer
from tests.services import test_runs
from tests.services.support import evaluation
from tests.services.test_runs import BEFORE, better, trained

pytestmark = pytest.mark.slow

query_set = test_runs.query_set

PLACE = "same/test/published"
DIVERSE_1 = "diverse · Q/Doc 1 · 4 pairs · seed 0 · wiki · minilm"


def study(workspace: Workspace, study_id: str, scores: dict[str, dict[str, float]], query_set: str = "gone",
          conditions: dict[str, dict[str, Any]] | None = None) -> str:  # fmt: skip
    """A study with one training per source, and the scores of what they started from under ``untrained``. What differs
    from the usual in a training's condition stands under its source in ``conditions``."""
    write_json(workspace.job(study_id) / "spec.json", {"id": study_id, "kind": "study", "created": "2026-01-01"})
    for i, (source, of) in enumerate(scores.items()):
        condition = {"retriever": "minilm", "source": source, "per_doc": 5, "weighting": "none", "seed": 7,
                     "max_documents": None, "budget": None, **(conditions or {}).get(source, {})}  # fmt: skip
        key = f"{i:08}{'a' * 16}"
        record: dict[str, Any] = {
            "schema": 1, "key": key, "retriever": "minilm", "created": "2026-01-01T00:00:00+00:00",
            "condition": None if source == "untrained" else condition,
            "training": None if source == "untrained" else {"pairs": 20, "documents": 4, "steps": 5},
            "settings": {"query_set": query_set, "retriever": "minilm", "epochs": 3},
            "evaluations": {PLACE: {
                "benchmark": "bench", "split": "test", "n_texts": 50, "query_ids": list(of),
                "ndcg@10": list(of.values()), "measures": {"ndcg@10": sum(of.values()) / len(of)}, "counts": {},
            }},
        }  # fmt: skip
        write_json(workspace.job(study_id) / "results" / "conditions" / f"{key}.json", record)
    return study_id


@pytest.fixture
def runs_here(workspace: Workspace, query_set: str) -> Workspace:
    evaluation(workspace, "minilm", "bench", BEFORE)
    evaluation(workspace, "bm25", "bench", better(0.2))
    trained(workspace, "training-1", query_set, better(0.1))
    study(workspace, "study-1", {"untrained": BEFORE, "diverse": better(0.3), "paraphrase": better(0.05)})
    return workspace


def names(board: boards.Board) -> list[str]:
    return [row.name for row in board.rows]


def test_each_run_stands_beside_its_own_start_and_bm25_and_studies_are_rows(runs_here: Workspace) -> None:
    board = boards.board(runs_here)
    assert names(board) == [
        "diverse · Q/Doc 5 · 20 pairs · seed 7 · minilm", "BM25", DIVERSE_1,
        "paraphrase · Q/Doc 5 · 20 pairs · seed 7 · minilm", "minilm",
    ]  # fmt: skip
    rows = {row.run: row for row in board.rows}
    run = rows["training-1"]
    assert run.difference == pytest.approx(10.1, abs=0.1)
    assert run.start_ndcg == pytest.approx(rows["minilm"].ndcg)
    assert run.low is not None
    assert run.high is not None
    assert run.p is not None
    assert run.low < 10.1 < run.high
    assert run.p < 0.001
    best = board.rows[0]
    assert (best.kind, best.study, best.trained and best.trained.settings["seed"]) == ("study", "study-1", 7)
    assert best.difference == pytest.approx(30.1, abs=0.1)
    assert rows["bm25"].difference is None
    assert [row.kind for row in board.rows] == ["study", "BM25", "training", "study", "untrained"]
    assert [badge.word for badge in run.badges] == ["unequal budget"]  # 4 pairs where the others have 20


def test_a_study_s_runs_are_no_evaluations_of_a_retriever_that_could_be_loaded(runs_here: Workspace) -> None:
    assert {row["retriever_id"] for row in catalog.evaluations(runs_here)} == {"minilm", "bm25", "training-1"}
    assert len(catalog.evaluations(runs_here, studies=True)) == 6
    (runs_here.jobs / "study-1" / "results" / "conditions" / f"{2:08}{'a' * 16}.json").unlink()
    assert len(catalog.evaluations(runs_here, studies=True)) == 5


def test_what_a_second_study_took_over_stands_once(runs_here: Workspace) -> None:
    study(runs_here, "study-2", {"untrained": BEFORE, "diverse": better(0.3)})
    assert len(boards.board(runs_here).rows) == 5


def test_equal_names_are_told_apart_by_what_differs(workspace: Workspace, query_set: str) -> None:
    for job, epochs in (("training-1", 1), ("training-2", 3)):
        settings = {"query_set": query_set, "retriever": "minilm", "seed": 0, "epochs": epochs}
        trained(workspace, job, query_set, BEFORE, settings=settings)
    assert sorted(names(boards.board(workspace))) == [f"{DIVERSE_1} · epochs 1", f"{DIVERSE_1} · epochs 3"]


def test_a_setting_that_is_off_tells_no_names_apart(workspace: Workspace, query_set: str) -> None:
    for job, off in (("training-1", {"hard_negatives": 0, "held": ""}), ("training-2", {"hard_negatives": None})):
        settings = {"query_set": query_set, "retriever": "minilm", "seed": 0, **off}
        trained(workspace, job, query_set, BEFORE, settings=settings)
    assert names(boards.board(workspace)) == [DIVERSE_1, DIVERSE_1]


def test_badges_say_what_a_score_has_to_be_read_with(workspace: Workspace, query_set: str) -> None:
    whole = {"trained_positives": 5, "judged_positives": 10}
    trained(workspace, "training-a", query_set, better(0.1), counts=whole)
    trained(workspace, "training-b", query_set, better(0.2), stopped=True, steps=1, steps_planned=116)
    trained(workspace, "training-c", query_set, better(0.3), counts={"leaked_queries": 40})
    trained(workspace, "training-d", query_set, better(0.3),
            notes=["The query set is incomplete: only what was there is trained on."])  # fmt: skip
    evaluation(workspace, "minilm", "bench", BEFORE, settings={"precision": "fp16"})
    badges = {row.run: row.badges for row in boards.board(workspace).rows}
    assert {run: [badge.word for badge in of] for run, of in badges.items()} == {
        "training-a": ["in-domain"], "training-b": ["stopped at step 1 of 116"], "training-c": ["leaked"],
        "training-d": ["incomplete set"], "minilm": ["half precision"],
    }  # fmt: skip
    assert all(badge.meaning for of in badges.values() for badge in of)
    assert [run for run, of in badges.items() if any(badge.fault for badge in of)] == ["training-c", "training-b"]


def test_what_is_not_shown_is_counted(runs_here: Workspace) -> None:
    runs.annotate(runs_here, ["training-1"], archived=True)
    runs.annotate(runs_here, ["bm25"], add=["lexical"])
    board = boards.board(runs_here)
    assert (len(board.rows), len(board.every), board.archived, board.filtered) == (4, 5, 1, 0)
    assert boards.left_out(board) == ["1 archived row is not shown."]
    assert len(boards.filtered(boards.board(runs_here), archived=True).rows) == 5
    board = boards.filtered(boards.board(runs_here), text="Q/Doc 5 diverse")
    assert (len(board.rows), board.filtered) == (1, 3)
    assert boards.left_out(board) == ["1 archived row is not shown.", "3 rows do not fit the filters."]
    assert names(boards.filtered(boards.board(runs_here), tags=["lexical"])) == ["BM25"]


def test_names_tags_and_notes_outlive_the_catalogue_and_travel(runs_here: Workspace, tmp_path: Path) -> None:
    runs.annotate(runs_here, ["training-1"], name="the one for the paper")
    runs.annotate(runs_here, ["training-1"], add=["paper", "kept"])
    runs.annotate(runs_here, ["training-1"], remove=["kept"])
    runs.annotate(runs_here, ["training-1"], note="Run again with three seeds.")
    before = json.loads(naming.annotation_file(runs_here).read_text())
    catalog.rebuild(runs_here)
    other = Workspace(shutil.copytree(runs_here.root, tmp_path / "other"))
    for place in (runs_here, other):
        (row,) = [row for row in boards.board(place).rows if row.run == "training-1"]
        assert (row.name, row.tags, row.note) == ("the one for the paper", ("paper",), "Run again with three seeds.")
        assert row.made_name == DIVERSE_1
    assert json.loads(naming.annotation_file(runs_here).read_text()) == before
    runs.annotate(other, ["training-1"], name="")
    assert DIVERSE_1 in names(boards.board(other))


def test_a_leak_stays_on_the_result_through_a_rebuild_and_a_copy(runs_here: Workspace, tmp_path: Path) -> None:
    trained(runs_here, "training-9", "gone", better(0.6), counts={"leaked_queries": 40, "judged_queries": 40})
    catalog.rebuild(runs_here)
    other = Workspace(shutil.copytree(runs_here.root, tmp_path / "other"))
    (row,) = [row for row in boards.board(other).rows if row.run == "training-9"]
    assert [badge.word for badge in row.badges if badge.fault] == ["leaked"]
    assert boards.record(row)["marks"] == "leaked"


def test_a_damaged_file_of_names_is_named_and_not_written_over(runs_here: Workspace) -> None:
    naming.annotation_file(runs_here).write_text('{"runs": [1]}')
    for act in (lambda: boards.board(runs_here), lambda: runs.annotate(runs_here, ["training-1"], name="x")):
        with pytest.raises(WorkspaceError, match=r"runs\.json does not hold"):
            act()
    assert naming.annotation_file(runs_here).read_text() == '{"runs": [1]}'


def test_a_project_shows_its_own_runs(runs_here: Workspace, query_set: str) -> None:
    evaluation(runs_here, "minilm", "elsewhere", BEFORE)
    made = projects.create(runs_here, "wiki project", benchmarks=[])
    assert made.id
    board = boards.board(runs_here, projects.members(runs_here, projects.ALL))
    assert len(board.rows) == 6


def test_the_command_line_lists_by_tag_and_leaves_out_archived_runs(runs_here: Workspace) -> None:
    rows = answer("results", "list")
    assert [row["ndcg@10"] for row in rows] == sorted((row["ndcg@10"] for row in rows), reverse=True)
    (row,) = [row for row in rows if row["retriever_id"] == "training-1"]
    assert row["difference"] == pytest.approx(10.1, abs=0.1)
    assert row["badges"][0]["word"] == "unequal budget"
    runs.annotate(runs_here, ["training-1"], add=["paper"])
    runs.annotate(runs_here, ["training-1"], archived=True)
    assert len(answer("results", "list")) == 4
    assert len(answer("results", "list", "--archived", "--tag", "paper")) == 1


def test_a_study_s_equal_pairs_are_not_averaged_with_equal_documents(workspace: Workspace) -> None:
    """They differ in what the plan draws, which stood in no setting: 77.5 and 62.2 were averaged to 72.3 ± 9.2."""
    drawn = {"": {"max_documents": 4}, "equal pairs": {"max_documents": 1, "budget": 4, "held": "equal pairs"}}
    conditions = {
        f"{held} {seed}": {"source": "diverse", "seed": seed, **about}
        for held, about in drawn.items()
        for seed in range(3)
    }
    gains = {
        name: 0.3 if conditions[name].get("held") else 0.1 + 0.05 * conditions[name]["seed"] for name in conditions
    }
    scores = {"untrained": BEFORE, **{name: better(gain) for name, gain in gains.items()}}
    study(workspace, "study-1", scores, conditions=conditions)
    rows = results.list_evaluations(workspace)
    related = set(runs.families(rows).values())
    of_run = {row["retriever_id"]: row["settings"]["condition"] for row in rows if row["trained"] is not None}
    assert sorted(sorted({of_run[key].get("held", "") for key in members}) for members in related) == [
        [""],
        ["equal pairs"],
    ]
    assert [len(members) for members in related] == [3, 3]
    beside = runs.near(rows, "minilm")
    assert [of_run[key].get("held", "") for key in beside] == ["equal pairs", ""], "one for each recipe, by their mean"
    assert runs.with_relatives(rows, beside) == set(of_run)
    averaged = results.compare(workspace, "minilm", beside, over_seeds=True)
    found = {row.retriever: (row.seeds, row.seed_sd is None) for row in averaged.rows if row.difference is not None}
    assert sorted(found.values()) == [(3, False), (3, True)]
    assert all(" · 3 seeds · " in name and "seed 0" not in name for name in found), found
