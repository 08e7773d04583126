"""What runs are called, which of them stand on Compare, and which never count as the best."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace, write_json
from cdp.corpus import read_documents, store
from cdp.results import board, differences, paper
from tests.services.support import evaluation

pytestmark = pytest.mark.slow  # to open the catalogue takes longer than what is read from it

BEFORE = {f"q{i}": 0.2 + 0.01 * (i % 9) for i in range(40)}
CALLED = "minilm · diverse × 5"


def better(by: float) -> dict[str, float]:
    return {query: value + by + 0.001 * (i % 3) for i, (query, value) in enumerate(BEFORE.items())}


@functools.cache
def wiki(session: Path) -> tuple[Workspace, str]:
    """Five diverse queries for each of four documents, in a set whose name says so, made once below the session's
    temporary folder, to be copied."""
    folder = session / "wiki"
    folder.mkdir()
    workspace = Workspace(folder / "workspace")
    path = folder / "wiki.jsonl"
    path.write_text("".join(json.dumps({"_id": f"d{i}", "text": f"Mill {i} grinds corn."}) + "\n" for i in range(4)))
    with read_documents(path) as result:
        corpus = store(result, "wiki", workspace)
    pairs = [(f"d{i}", [f"query {n} of mill {i}" for n in range(5)]) for i in range(4)]
    made = query_sets.import_queries(pairs, workspace, corpus.id, CALLED, kind="synthetic", method="diverse").query_set
    return workspace, query_sets.update(workspace, made.id, generator="template").id


@pytest.fixture
def query_set(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> str:
    made, query_set = wiki(tmp_path_factory.getbasetemp())
    shutil.copytree(made.root, workspace.root)
    return query_set


def trained(workspace: Workspace, job: str, query_set: str, scores: dict[str, float], *, start: str = "minilm",
            counts: dict[str, int] | None = None, **result: Any) -> str:  # fmt: skip
    """A training whose result is ``result`` and its evaluation, as the workers write them."""
    settings = {"query_set": query_set, "retriever": start, "name": "", "weighting": "none", "seed": 0}
    write_json(
        workspace.job(job) / "results" / "training.json",
        {"id": job, "retriever": start, "query_set": query_set, "weighting": "none", "pairs": 4, "documents": 4,
         "steps": 10, "steps_planned": 10, "stopped": False, "settings": settings, **result},
    )  # fmt: skip
    write_json(workspace.job(job) / "spec.json", {"id": job, "kind": "training", "name": CALLED, "config": settings,
                                                  "created": "2026-01-01",
                                                  "module": "cdp.workers.training"})  # fmt: skip
    return evaluation(workspace, job, "bench", scores, kind="job", name=CALLED, counts=counts)


def test_a_run_is_called_by_what_it_was_trained_on_not_by_its_set(workspace: Workspace, query_set: str) -> None:
    config = TrainingConfig(query_set=query_set, retriever="minilm", per_doc=1)
    assert board.label(workspace, config) == "minilm · diverse × 1 · wiki"
    whole = TrainingConfig(query_set=query_set, retriever="minilm", weighting="cw", seed=3)
    assert board.label(workspace, whole) == "minilm · diverse × 5 · cw · wiki · seed 3"
    budget = TrainingConfig(query_set=query_set, retriever="minilm", per_doc=3, pairs=10)
    assert board.label(workspace, budget) == "minilm · diverse × 3 · wiki", "of the last document one query is taken"
    trained(workspace, "training-1", query_set, BEFORE)  # of before names said so
    (row,) = board.list_evaluations(workspace)
    assert row["retriever_name"] == "minilm · diverse × 1"


def test_baselines_the_cheapest_training_and_the_best_stand_beside_however_old(
    workspace: Workspace, query_set: str
) -> None:
    evaluation(workspace, "minilm", "bench", BEFORE)
    evaluation(workspace, "bm25", "bench", better(0.01))
    for i in range(9):  # the first is the oldest and the best, the last the only one of one query per document
        settings = {"query_set": query_set, "retriever": "minilm", "seed": 0, "epochs": i + 1}
        pairs = 4 if i == 8 else 20
        trained(workspace, f"training-{i}", query_set, better(0.3 - 0.02 * i), settings=settings, pairs=pairs)
    rows = board.list_rows(workspace, board.list_evaluations(workspace))
    assert len(rows) == 11
    assert differences.default_comparison(rows, "minilm") == [
        "bm25",
        "training-8",
        *(f"training-{i}" for i in range(8)),
    ]
    assert differences.default_comparison(rows, "minilm", most=4) == ["bm25", "training-8", "training-0", "training-1"]


def test_a_run_repeated_with_its_seed_counts_once_by_the_newest(workspace: Workspace, query_set: str) -> None:
    for i in range(3):
        trained(workspace, f"training-{i}", query_set, better(0.1 * i))
    (row,) = board.list_rows(workspace, board.list_evaluations(workspace))
    assert (row.retriever, row.runs, row.seeds) == ("minilm · diverse × 1", ("training-2",), 1)


def test_a_stopped_or_leaked_run_is_marked_and_never_the_best(workspace: Workspace, query_set: str) -> None:
    evaluation(workspace, "minilm", "bench", BEFORE)
    trained(workspace, "training-whole", query_set, better(0.1), pairs=16)
    trained(workspace, "training-stopped", query_set, better(0.3), pairs=12,
            counts={"steps_taken": 1, "steps_planned": 116})  # fmt: skip
    leaked = {"leaked_queries": 40, "judged_queries": 40}
    trained(workspace, "training-leaked", query_set, better(0.6), pairs=8, counts=leaked)
    rows = board.list_evaluations(workspace)
    assert differences.default_comparison(board.list_rows(workspace, rows), "minilm")[0] == "training-whole"
    found = differences.compare(workspace, "minilm")
    by_id = {row.retriever_id: row for row in found.rows}
    assert by_id["training-stopped"].marks == "stopped at step 1 of 116"
    assert by_id["training-leaked"].marks == "leaked"
    assert {key: row.significant for key, row in by_id.items()} == {
        "minilm": False, "training-whole": True, "training-stopped": False, "training-leaked": False,
    }  # fmt: skip
    cells = {name: line[0] for name, line in paper.paper_table(found).rows}
    whole, stopped = (cells[by_id[key].retriever] for key in ("training-whole", "training-stopped"))
    assert (whole.place, stopped.place, stopped.dagger) == (1, 0, False)
    markdown = paper.write(found, "markdown")
    assert "(stopped at step 1 of 116)" in markdown
    assert "(leaked)" in markdown


def test_the_baseline_is_what_the_runs_started_from(workspace: Workspace, query_set: str) -> None:
    evaluation(workspace, "minilm", "bench", BEFORE)
    trained(workspace, "training-1", query_set, better(0.1))
    trained(workspace, "training-2", query_set, better(0.1))
    trained(workspace, "training-3", query_set, better(0.1), start="other")
    for benchmark in ("bench", "second", "third"):
        evaluation(workspace, "newer", benchmark, BEFORE, created="2026-02-01T00:00:00+00:00")
    evaluation(workspace, "other", "bench", BEFORE)
    evaluation(workspace, "bm25", "bench", better(0.5))
    assert board.baseline(board.list_rows(workspace, board.list_evaluations(workspace))) == "minilm"


def test_without_a_run_an_untrained_model_is_the_baseline_not_bm25(workspace: Workspace) -> None:
    for benchmark in ("bench", "second"):
        evaluation(workspace, "bm25", benchmark, BEFORE)
    evaluation(workspace, "minilm", "bench", BEFORE)
    assert board.baseline(board.list_rows(workspace, board.list_evaluations(workspace))) == "minilm"
    assert board.baseline([]) == ""
