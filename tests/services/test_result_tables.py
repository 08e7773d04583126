"""A comparison as the table of a paper, both tests of a difference, and runs that differ in the seed alone."""

from __future__ import annotations

import csv
import io
import json
from functools import partial

import numpy as np
import pytest

from cdp.base.statistics import holm, paired_test, two_level_test
from cdp.base.workspace import Workspace, write_json
from cdp.cli import answers
from cdp.results import paper
from tests.services.support import Scenarios, evaluation

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


AFTER = shifted(0.05)
RUNS = [shifted(0.1), shifted(0.12), shifted(0.02)]
EQUAL = shifted(0.1)


def fill(workspace: Workspace) -> dict[str, list[str]]:
    add = partial(evaluation, workspace)

    def run(job: str, seed: int, scores: dict[str, float], called: str, **settings: object) -> str:
        return add(seeded(workspace, job, seed, **settings), "bench", scores, kind="job", name=called)

    base, hotpotqa = add("base", "bench", BASE), add("base", "hotpotqa", BASE)
    three = [add(name, place, scores) for name, scores in (("base", BASE), ("other", shifted(0.2)))
             for place in ("one", "two", "three")]  # fmt: skip
    mine = [run(f"training-{i}", i, scores, "mine") for i, scores in enumerate(RUNS)]
    named = [run(f"training-n{i}", i, shifted(0.1), f"my run {i}", name=f"my run {i}", save_steps=100 * (i + 1))
             for i in range(3)]  # fmt: skip
    return {
        "daggers": [hotpotqa, add("clear", "hotpotqa", shifted(0.2)), add("same", "hotpotqa", BASE)],
        "groups": [add("base", name, BASE) for name in ("scifact", "fiqa", "mine")],
        "three": three,
        "splits": [add(name, "bench", BASE, split=split) for name in ("base", "other") for split in ("test", "dev")],
        "one": [base, add("other <b>", "bench", AFTER)],
        "mine": [base, *mine],
        "mine and longer": [base, *mine, run("training-9", 7, BASE, "longer", epochs=5)],
        "untrained": [base, add("another", "bench", shifted(0.1))],
        "named": [base, *named],
        "equal": [base, *(run(f"training-e{i}", i, EQUAL, "equal") for i in range(3))],
        "many": [base, *(add(name, "bench", shifted(by)) for name, by in (("a", 0.01), ("b", 0.03), ("c", 0.0)))],
    }


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Scenarios:
    return Scenarios(Workspace(tmp_path_factory.mktemp("tables") / "workspace"), fill)


def test_daggers_and_notes_name_the_test_the_correction_and_the_queries(scenarios: Scenarios) -> None:
    table = paper.paper_table(scenarios.compare("daggers"))
    cells = {name: cells[table.columns.index("hotpotqa")] for name, cells in table.rows}
    assert {name for name, cell in cells.items() if cell.dagger} == {"clear"}
    assert list(cells) == ["base", "clear", "same"]
    (note,) = table.notes
    assert "paired t-test" in note
    assert "Holm for 2 comparisons" in note
    assert "hotpotqa 60" in note


def test_a_groups_mean_counts_what_nobody_was_evaluated_on(scenarios: Scenarios) -> None:
    table = paper.paper_table(scenarios.compare("groups"))
    assert table.columns == ("fiqa", "mine", "scifact", "BEIR mean", "Mean (3 of 3)")
    assert table.rows[0][1][3].remark == "2/14"


def test_a_note_names_all_that_was_corrected_for_also_where_fewer_are_shown(scenarios: Scenarios) -> None:
    found = scenarios.compare("three").on(["two"])
    assert len([row for row in found.rows if row.p_holm is not None]) == 1
    assert "Holm for 3 comparisons" in paper.notes(found)[0]


def test_a_place_does_not_mean_the_other_splits_of_its_benchmark(scenarios: Scenarios) -> None:
    found = scenarios.compare("splits")
    assert [row.split for row in found.on(["bench"]).rows] == ["test", "test"]
    assert [row.split for row in found.on(["bench dev"]).rows] == ["dev", "dev"]


def test_the_test_and_its_interval_stand_in_every_row_and_every_form(scenarios: Scenarios) -> None:
    found = scenarios.compare("one")
    row = found.rows[1]
    expected = paired_test([100 * (AFTER[q] - BASE[q]) for q in BASE])
    assert row.p_t == expected.p_t
    assert row.p_holm == expected.p_t
    assert (row.low, row.high) == (expected.low, expected.high)
    rows = list(csv.DictReader(io.StringIO(paper.write(found, "csv"))))
    assert float(rows[1]["p_t"]) == row.p_t
    value = json.loads(json.dumps(answers.plain(paper.to_dict(found))))
    assert value["rows"][1]["difference"] == row.difference
    assert "scores" not in value
    assert value["rows"][1]["ndcg"] == row.ndcg
    assert value["notes"] == paper.notes(found)
    assert "other &lt;b&gt;" in paper.write(found, "markdown")
    assert r"\begin{tabular}" in paper.write(found, "latex")


def test_runs_that_differ_in_the_seed_alone_are_averaged(scenarios: Scenarios) -> None:
    found = scenarios.compare("mine and longer")
    rows = {row.retriever: row for row in found.rows}
    assert set(rows) == {"base", "longer", "mine (3 seeds)"}
    row = rows["mine (3 seeds)"]
    means = [100 * float(np.mean(list(scores.values()))) for scores in RUNS]
    assert row.seeds == 3
    assert row.ndcg == pytest.approx(np.mean(means))
    assert row.seed_sd == pytest.approx(np.std(means, ddof=1))
    averaged = [100 * (np.mean([scores[q] for scores in RUNS]) - BASE[q]) for q in BASE]
    assert row.p_t == pytest.approx(paired_test(averaged).p_t)
    assert rows["longer"].seed_sd is None
    assert "± " in paper.notes(found)[1]
    assert "seed" not in found.settings
    # One of them, where it is named, brings its seeds.
    assert [row.seeds for row in scenarios.compare("mine", retrievers=["training-1"]).rows] == [1, 3]


def test_seeds_are_recognised_whatever_the_runs_are_called(scenarios: Scenarios) -> None:
    """``name`` was in the key, so that runs with names of their own were never averaged."""
    (row,) = [row for row in scenarios.compare("named").rows if row.difference is not None]
    assert row.seeds == 3


def test_training_noise_is_in_the_test_or_said_not_to_be(scenarios: Scenarios) -> None:
    together = scenarios.compare("mine")
    (row,) = [row for row in together.rows if row.difference is not None]
    expected = two_level_test(
        [np.array([100 * scores[q] for q in BASE]) for scores in RUNS], [np.array([100 * v for v in BASE.values()])]
    )
    assert (row.noise, row.p_seeds, row.p_holm) == ("seeds", *[pytest.approx(expected.p)] * 2)
    assert row.low == pytest.approx(expected.low)
    assert row.p_t is not None
    assert row.p_t < expected.p
    assert any("two-level test" in note for note in paper.notes(together))
    alone = scenarios.compare("mine and longer", retrievers=["training-9"])
    assert {row.noise for row in alone.rows if row.difference is not None} == {"unknown"}
    assert any("Training noise is not in the test" in note for note in paper.notes(alone))
    (row,) = [row for row in scenarios.compare("untrained").rows if row.difference is not None]
    assert row.noise == ""


def test_equal_seeds_are_no_spread(scenarios: Scenarios) -> None:
    (row,) = [row for row in scenarios.compare("equal").rows if row.difference is not None]
    assert (row.seed_sd, row.noise) == (None, "unknown")
    assert row.score == f"{row.ndcg:.2f}"


def test_correction_is_for_all_differences(scenarios: Scenarios) -> None:
    rows = scenarios.compare("many").rows[1:]
    assert [row.p_holm for row in rows] == pytest.approx(holm([row.p_t for row in rows if row.p_t]))
