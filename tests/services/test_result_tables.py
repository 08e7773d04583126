"""A comparison as the table of a paper, both tests of a difference, and runs that differ in the seed alone."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from cdp.base.statistics import holm, paired_test, two_level_test
from cdp.base.workspace import Workspace, write_json
from cdp.cli import display
from cdp.services import result_tables, results
from tests.services.support import evaluation

pytestmark = pytest.mark.slow

CHANCE = np.random.default_rng(0)
BASE = {f"q{i}": float(v) for i, v in enumerate(CHANCE.random(60))}


def shifted(by: float) -> dict[str, float]:
    return {query: float(np.clip(v + by + CHANCE.normal(0, 0.1), 0, 1)) for query, v in BASE.items()}


def seeded(workspace: Workspace, job: str, seed: int, **settings: object) -> str:
    config = {"query_set": "set", "retriever": "static-minilm", "epochs": 3, "name": job, **settings, "seed": seed}
    spec = {"id": job, "kind": "training", "name": job, "created": "", "module": "none", "config": config}
    write_json(workspace.job(job) / "spec.json", spec)
    result = {"id": job, "retriever": "static-minilm", "query_set": "set", "pairs": 4, "documents": 4, "steps": 3}
    write_json(workspace.job(job) / "results" / "training.json", {**result, "settings": config})
    return job


def test_daggers_and_notes_name_the_test_the_correction_and_the_queries(workspace: Workspace) -> None:
    evaluation(workspace, "base", "hotpotqa", BASE)
    evaluation(workspace, "clear", "hotpotqa", shifted(0.2))
    evaluation(workspace, "same", "hotpotqa", BASE)
    table = result_tables.paper_table(results.compare(workspace, "base"))
    cells = {name: cells[table.columns.index("hotpotqa")] for name, cells in table.rows}
    assert {name for name, cell in cells.items() if cell.dagger} == {"clear"}
    assert list(cells) == ["base", "clear", "same"]
    (note,) = table.notes
    assert "paired t-test" in note
    assert "Holm for 2 comparisons" in note
    assert "hotpotqa 60" in note


def test_a_groups_mean_counts_what_nobody_was_evaluated_on(workspace: Workspace) -> None:
    for name in ("scifact", "fiqa", "mine"):
        evaluation(workspace, "base", name, BASE)
    table = result_tables.paper_table(results.compare(workspace, "base"))
    assert table.columns == ("fiqa", "mine", "scifact", "BEIR mean", "Mean (3 of 3)")
    assert table.rows[0][1][3].remark == "2/14"


def test_a_note_names_all_that_was_corrected_for_also_where_fewer_are_shown(workspace: Workspace) -> None:
    for name in ("one", "two", "three"):
        evaluation(workspace, "base", name, BASE)
        evaluation(workspace, "other", name, shifted(0.2))
    found = results.compare(workspace, "base").on(["two"])
    assert len([row for row in found.rows if row.p_holm is not None]) == 1
    assert "Holm for 3 comparisons" in result_tables.notes(found)[0]


def test_a_place_does_not_mean_the_other_splits_of_its_benchmark(workspace: Workspace) -> None:
    for retriever in ("base", "other"):
        for split in ("test", "dev"):
            evaluation(workspace, retriever, "bench", BASE, split=split)
    found = results.compare(workspace, "base")
    assert [row.split for row in found.on(["bench"]).rows] == ["test", "test"]
    assert [row.split for row in found.on(["bench dev"]).rows] == ["dev", "dev"]


def test_both_tests_the_interval_and_the_effect_stand_in_every_row(workspace: Workspace) -> None:
    after = shifted(0.05)
    evaluation(workspace, "base", "bench", BASE)
    evaluation(workspace, "other", "bench", after)
    row = results.compare(workspace, "base").rows[1]
    expected = paired_test([100 * (after[q] - BASE[q]) for q in BASE])
    assert row.p_t == expected.p_t
    assert row.p_holm == expected.p_t
    assert (row.low, row.high) == (expected.low, expected.high)


def test_every_form_holds_the_same_numbers(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BASE)
    evaluation(workspace, "other <b>", "bench", shifted(0.1))
    found = results.compare(workspace, "base")
    rows = list(csv.DictReader(io.StringIO(result_tables.write(found, "csv"))))
    assert float(rows[1]["p_t"]) == found.rows[1].p_t
    value = json.loads(json.dumps(display.plain(result_tables.to_dict(found))))
    assert value["rows"][1]["difference"] == found.rows[1].difference
    assert "scores" not in value
    assert value["rows"][1]["ndcg"] == found.rows[1].ndcg
    assert value["notes"] == result_tables.notes(found)
    assert "other &lt;b&gt;" in result_tables.write(found, "markdown")
    assert r"\begin{tabular}" in result_tables.write(found, "latex")


def test_runs_that_differ_in_the_seed_alone_are_averaged(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BASE)
    runs = [shifted(0.1) for _ in range(3)]
    for i, scores in enumerate(runs):
        evaluation(workspace, seeded(workspace, f"training-{i}", i), "bench", scores, kind="job", name="mine")
    other = seeded(workspace, "training-9", 7, epochs=5)
    evaluation(workspace, other, "bench", BASE, kind="job", name="longer")
    found = results.compare(workspace, "base")
    rows = {row.retriever: row for row in found.rows}
    assert set(rows) == {"base", "longer", "mine (3 seeds)"}
    row = rows["mine (3 seeds)"]
    means = [100 * float(np.mean(list(scores.values()))) for scores in runs]
    assert row.seeds == 3
    assert row.ndcg == pytest.approx(np.mean(means))
    assert row.seed_sd == pytest.approx(np.std(means, ddof=1))
    averaged = [100 * (np.mean([scores[q] for scores in runs]) - BASE[q]) for q in BASE]
    assert row.p_t == pytest.approx(paired_test(averaged).p_t)
    assert rows["longer"].seed_sd is None
    assert "± " in result_tables.notes(found)[1]
    assert "seed" not in found.settings


def test_seeds_are_recognised_whatever_the_runs_are_called(workspace: Workspace) -> None:
    """``name`` was in the key, so that runs with names of their own were never averaged."""
    evaluation(workspace, "base", "bench", BASE)
    for i in range(3):
        job = seeded(workspace, f"training-{i}", i, name=f"my run {i}", save_steps=100 * (i + 1))
        evaluation(workspace, job, "bench", shifted(0.1), kind="job", name=f"my run {i}")
    (row,) = [row for row in results.compare(workspace, "base").rows if row.difference is not None]
    assert row.seeds == 3


def test_training_noise_is_in_the_test_or_said_not_to_be(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BASE)
    runs = [shifted(0.1), shifted(0.12), shifted(0.02)]
    for i, scores in enumerate(runs):
        evaluation(workspace, seeded(workspace, f"training-{i}", i), "bench", scores, kind="job", name="mine")
    together = results.compare(workspace, "base")
    (row,) = [row for row in together.rows if row.difference is not None]
    expected = two_level_test(
        [np.array([100 * scores[q] for q in BASE]) for scores in runs], [np.array([100 * v for v in BASE.values()])]
    )
    assert (row.noise, row.p_seeds, row.p_holm) == ("seeds", *[pytest.approx(expected.p)] * 2)
    assert row.low == pytest.approx(expected.low)
    assert row.p_t is not None
    assert row.p_t < expected.p
    assert any("two-level test" in note for note in result_tables.notes(together))
    evaluation(workspace, seeded(workspace, "training-9", 7, epochs=5), "bench", BASE, kind="job", name="longer")
    alone = results.compare(workspace, "base", ["training-9"])
    assert {row.noise for row in alone.rows if row.difference is not None} == {"unknown"}
    assert any("Training noise is not in the test" in note for note in result_tables.notes(alone))
    fixed = evaluation(workspace, "another", "bench", shifted(0.1))
    assert fixed
    (row,) = [row for row in results.compare(workspace, "base", ["another"]).rows if row.difference is not None]
    assert row.noise == ""


def test_equal_seeds_are_no_spread(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BASE)
    same = shifted(0.1)
    for i in range(3):
        evaluation(workspace, seeded(workspace, f"training-{i}", i), "bench", same, kind="job", name="mine")
    found = results.compare(workspace, "base")
    (row,) = [row for row in found.rows if row.difference is not None]
    assert (row.seed_sd, row.noise) == (None, "unknown")
    assert row.score == f"{row.ndcg:.2f}"


def test_one_named_run_brings_its_seeds(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BASE)
    for i in range(2):
        evaluation(workspace, seeded(workspace, f"training-{i}", i), "bench", shifted(0.1), kind="job", name="mine")
    found = results.compare(workspace, "base", ["training-1"])
    assert [row.seeds for row in found.rows] == [1, 2]


def test_correction_is_for_all_differences(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BASE)
    for name, by in (("a", 0.01), ("b", 0.03), ("c", 0.0)):
        evaluation(workspace, name, "bench", shifted(by))
    rows = results.compare(workspace, "base").rows[1:]
    assert [row.p_holm for row in rows] == pytest.approx(holm([row.p_t for row in rows if row.p_t]))
