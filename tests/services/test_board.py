"""The leaderboard: one row per recipe, nothing goes unsaid, and what people wrote stays."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cdp import catalog
from cdp.base.errors import WorkspaceError
from cdp.base.workspace import Workspace, write_json
from cdp.results import board, differences, naming
from cdp.results.board import ResultRow
from cdp.services import evaluation as service
from cdp.services import projects
from tests.cli.support import answer
from tests.services import test_runs
from tests.services.support import evaluation
from tests.services.test_runs import BEFORE, better, trained, wiki

pytestmark = pytest.mark.slow

query_set = test_runs.query_set

PLACE = "same/test/published"
DIVERSE_1 = "minilm · diverse × 1"


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
                "seconds": {"searching": 0.1},
            }},
        }  # fmt: skip
        write_json(workspace.job(study_id) / "results" / "conditions" / f"{key}.json", record)
    return study_id


@functools.cache
def all_kinds_of_runs(session: Path) -> Workspace:
    """A workspace with its catalogue, made once below the session's temporary folder, to be read and copied."""
    made, query_set = wiki(session)
    workspace = Workspace(shutil.copytree(made.root, session / "board"))
    evaluation(workspace, "minilm", "bench", BEFORE)
    evaluation(workspace, "bm25", "bench", better(0.2))
    trained(workspace, "training-1", query_set, better(0.1))
    study(workspace, "study-1", {"untrained": BEFORE, "diverse": better(0.3), "paraphrase": better(0.05)})
    catalog.ingest(workspace)
    return workspace


@pytest.fixture(scope="module")
def runs_made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """All kinds of runs, to be read only."""
    return all_kinds_of_runs(tmp_path_factory.getbasetemp())


@pytest.fixture
def runs_here(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """All kinds of runs in the test's own workspace."""
    shutil.copytree(all_kinds_of_runs(tmp_path_factory.getbasetemp()).root, workspace.root)
    return workspace


def rows_of(workspace: Workspace, **options: Any) -> list[ResultRow]:
    return board.list_rows(workspace, board.list_evaluations(workspace), **options)


def names(rows: list[ResultRow]) -> list[str]:
    return [row.retriever for row in rows]


def test_trainings_studies_untrained_ones_and_bm25_are_rows_the_best_first(runs_made: Workspace) -> None:
    rows = rows_of(runs_made)
    assert names(rows) == ["minilm · diverse × 5", "BM25", "minilm · diverse × 1", "minilm · paraphrase × 5", "minilm"]
    assert [row.kind for row in rows] == ["study", "BM25", "training", "study", "untrained"]
    best = rows[0].trained
    assert best is not None
    assert (best.study, best.settings["seed"]) == ("study-1", 7)
    assert [badge.word for badge in rows[2].badges] == ["10 steps"]  # where the others took 5
    compared = differences.compare(runs_made, "minilm", [row.retriever_id for row in rows])
    found = {row.retriever: row for row in compared.rows}
    run = found["minilm · diverse × 1"]
    assert run.difference == pytest.approx(10.1, abs=0.1)
    assert run.low is not None
    assert run.high is not None
    assert run.p_holm is not None
    assert run.low < 10.1 < run.high
    assert run.p_holm < 0.001
    assert found["minilm · diverse × 5"].difference == pytest.approx(30.1, abs=0.1)
    assert found["minilm"].difference is None


def test_a_study_s_runs_are_no_evaluations_of_a_retriever_that_could_be_loaded(runs_here: Workspace) -> None:
    assert {row["retriever_id"] for row in catalog.evaluations(runs_here)} == {"minilm", "bm25", "training-1"}
    assert len(catalog.evaluations(runs_here, studies=True)) == 6
    study(runs_here, "study-2", {"untrained": BEFORE, "diverse": better(0.3)})
    assert len(rows_of(runs_here)) == 5, "what a second study took over stands once"
    (runs_here.jobs / "study-1" / "results" / "conditions" / f"{2:08}{'a' * 16}.json").unlink()
    assert names(rows_of(runs_here)) == ["minilm · diverse × 5", "BM25", "minilm · diverse × 1", "minilm"]


def test_equal_names_are_told_apart_by_what_differs(workspace: Workspace, query_set: str) -> None:
    for job, epochs in (("training-1", 1), ("training-2", 3)):
        settings = {"query_set": query_set, "retriever": "minilm", "seed": 0, "epochs": epochs}
        trained(workspace, job, query_set, BEFORE, settings=settings)
    assert sorted(names(rows_of(workspace))) == [f"{DIVERSE_1} · epochs 1", f"{DIVERSE_1} · epochs 3"]


def test_a_setting_that_is_off_makes_no_other_recipe(workspace: Workspace, query_set: str) -> None:
    for job, off in (("training-1", {"hard_negatives": 0, "held": ""}), ("training-2", {"hard_negatives": None})):
        settings = {"query_set": query_set, "retriever": "minilm", "seed": 0, **off}
        trained(workspace, job, query_set, BEFORE, settings=settings)
    assert names(rows_of(workspace)) == [DIVERSE_1]


def test_badges_say_what_a_score_has_to_be_read_with(workspace: Workspace, query_set: str) -> None:
    whole = {"trained_positives": 5, "judged_positives": 10}
    longer = {"query_set": query_set, "retriever": "minilm", "epochs": 9}
    trained(workspace, "training-a", query_set, better(0.1), counts=whole, settings=longer)
    trained(workspace, "training-b", query_set, better(0.2), counts={"steps_taken": 1, "steps_planned": 116})
    trained(workspace, "training-c", query_set, better(0.3), counts={"leaked_queries": 40})
    trained(workspace, "training-d", query_set, better(0.3),
            notes=["The query set is incomplete: only what was there is trained on."])  # fmt: skip
    evaluation(workspace, "minilm", "bench", BEFORE, settings={"precision": "fp16"})
    chosen = {"query_set": query_set, "retriever": "minilm", "benchmark": "bench", "split": "test"}
    trained(workspace, "training-e", query_set, better(0.15), settings=chosen)
    badges = {row.retriever_id: row.badges for row in rows_of(workspace)}
    assert {run: [badge.word for badge in of] for run, of in badges.items()} == {
        "training-a": ["in-domain"], "training-b": ["stopped at step 1 of 116"], "training-c": ["leaked"],
        "training-d": ["incomplete set"], "training-e": ["dev"], "minilm": ["half precision"],
    }  # fmt: skip
    assert all(badge.meaning for of in badges.values() for badge in of)
    assert [run for run, of in badges.items() if any(badge.fault for badge in of)] == ["training-c", "training-b"]


def test_names_and_leaks_outlive_the_catalogue_and_travel(runs_here: Workspace, tmp_path: Path) -> None:
    service.rename(runs_here, ["training-1"], " the one for the paper ")
    trained(runs_here, "training-9", "gone", better(0.6), counts={"leaked_queries": 40, "judged_queries": 40})
    catalog.rebuild(runs_here)
    other = Workspace(shutil.copytree(runs_here.root, tmp_path / "other"))
    for place in (runs_here, other):
        rows = {row.retriever_id: row for row in rows_of(place)}
        assert rows["training-1"].retriever == "the one for the paper"
        assert [badge.word for badge in rows["training-9"].badges if badge.fault] == ["leaked"]
        assert rows["training-9"].record()["marks"] == "leaked"
    service.rename(other, ["training-1"], "")
    assert DIVERSE_1 in names(rows_of(other))
    assert json.loads(naming.names_file(other).read_text())["runs"] == {}


def test_the_command_line_lists_the_best_first_and_names_a_damaged_file_of_names(runs_here: Workspace) -> None:
    rows = answer("results", "list")
    assert [row["ndcg@10"] for row in rows] == sorted((row["ndcg@10"] for row in rows), reverse=True)
    (row,) = [row for row in rows if row["retriever_id"] == "training-1"]
    assert row["retriever"] == DIVERSE_1
    assert row["badges"][0]["word"] == "10 steps"
    naming.names_file(runs_here).write_text('{"runs": [1]}')
    for act in (lambda: rows_of(runs_here), lambda: service.rename(runs_here, ["training-1"], "x")):
        with pytest.raises(WorkspaceError, match=r"runs\.json does not hold"):
            act()
    assert naming.names_file(runs_here).read_text() == '{"runs": [1]}'


def test_a_project_shows_its_own_runs(runs_here: Workspace) -> None:
    evaluation(runs_here, "minilm", "elsewhere", BEFORE)
    made = projects.create(runs_here, "wiki project", benchmarks=[])
    assert made.id
    everything = board.list_evaluations(runs_here, projects.members(runs_here, projects.ALL))
    assert len(board.list_rows(runs_here, everything)) == 6


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
    rows = board.list_evaluations(workspace)
    of_run = {row["retriever_id"]: row["settings"]["condition"] for row in rows if row["trained"] is not None}
    found = board.list_rows(workspace, rows)
    assert sorted((row.retriever, row.seeds, row.seed_sd is None) for row in found) == [
        ("minilm", 1, True),
        ("minilm · diverse × 5", 3, False),
        ("minilm · diverse × 5 · equal pairs", 3, True),
    ]
    assert {run for row in found for run in row.runs} >= set(of_run)
    for row in (row for row in found if row.trained):
        assert len({of_run[run].get("held", "") for run in row.runs}) == 1
