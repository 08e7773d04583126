"""Learning-rate sweeps: what the report says of the runs, and a real sweep from the command line."""

from __future__ import annotations

import pytest

from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.studies.sweeps import AROUND, RATES, SweepReport, SweepRun, grid, rate, read_rates, to_markdown
from cdp.training.plan import eval_steps_of


def run(learning_rate: float, *scores: float, state: str = "finished", problem: str = "") -> SweepRun:
    evaluations = tuple(((i + 1) * 500, score) for i, score in enumerate(scores))
    return SweepRun(learning_rate, f"job-{rate(learning_rate)}", state, 1500, 1500, 0.5, evaluations, problem)


def report(*runs: SweepRun) -> SweepReport:
    return SweepReport("s", "a sweep", "contriever", "queries", "dev-set/dev", runs)


def test_the_rate_with_the_best_checkpoint_is_chosen_and_of_equals_the_lowest() -> None:
    found = report(run(1e-6, 40.0, 42.0), run(2e-6, 43.5, 43.0), run(5e-6, 43.5, 41.0))
    assert found.chosen is found.runs[1]
    assert (found.chosen.best, found.chosen.best_step, found.chosen.final) == (43.5, 500, 43.0)
    assert found.findings[0] == "Chosen: 2e-6, dev NDCG@10 43.50 at step 500."
    assert "0.00 points ahead" in found.findings[1]
    assert found.edge == ""
    assert len(found.findings) == 2


@pytest.mark.parametrize(("best", "edge", "beyond"), [(0, "lowest", "4e-7"), (2, "highest", "1.25e-5")])
def test_a_choice_at_the_edge_of_the_grid_says_so(best: int, edge: str, beyond: str) -> None:
    scores = [40.0, 40.5, 40.0]
    scores[best] = 50.0
    found = report(*(run(r, s) for r, s in zip((1e-6, 2e-6, 5e-6), scores, strict=True)))
    assert found.edge == edge
    assert f"It is the {edge} rate of the grid" in found.findings[-1]
    assert beyond in found.findings[-1]


def test_runs_that_fail_or_go_on_are_told_apart_from_a_finished_sweep() -> None:
    failed = run(5e-6, state="failed", problem="Training diverged: the loss is no longer a finite number.")
    found = report(run(1e-6, 40.0), failed)
    assert found.done
    assert found.findings[-1] == "5e-6 failed: Training diverged: the loss is no longer a finite number."
    going = report(run(1e-6, 40.0), run(5e-6, state="running"))
    assert not going.done
    assert going.findings[0].startswith("Best so far: 1e-6")
    assert not any("edge" in text or "rate of the grid" in text for text in going.findings)
    assert report(run(1e-6, state="queued"), run(2e-6, state="queued")).findings == ["No run has been evaluated yet."]
    assert report(failed, failed).findings[0] == "No run came to an evaluation."


def test_the_table_has_a_row_per_rate_and_a_column_per_checkpoint() -> None:
    found = report(run(1e-6, 40.0, 42.0), run(2e-6, 43.5))
    lines = to_markdown(found).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert table[0] == "| Learning rate | step 500 | step 1,000 | best | at step | final loss | state | job |"
    assert table[2] == "| 1e-6 | 40.00 | 42.00 | 42.00 | 1,000 | 0.5000 | finished | `job-1e-6` |"
    assert table[3] == "| 2e-6 ● | 43.50 | – | **43.50** | 500 | 0.5000 | finished | `job-2e-6` |"


def test_many_checkpoints_are_thinned_evenly_and_keep_the_last() -> None:
    found = report(run(1e-6, *(40.0 + i for i in range(31))), run(2e-6, 1.0))
    assert len(found.checkpoints) == 6
    assert found.checkpoints[-1] == 15500
    assert found.checkpoints == sorted(set(found.checkpoints))


def test_rates_are_read_sorted_and_printed_as_the_paper_prints_them() -> None:
    assert read_rates("1e-5, 2e-7;5e-07") == (2e-7, 5e-7, 1e-5)
    assert [rate(value) for value in RATES] == ["2e-7", "5e-7", "1e-6", "2e-6", "5e-6", "1e-5"]
    assert [rate(value) for value in (0.005, 0.0125, 1.25e-5, 1.0)] == ["5e-3", "1.25e-2", "1.25e-5", "1e0"]
    for wrong, words in (("1e-5", "two"), ("1e-5,x", "'x'"), ("0,1e-5", "above 0"), ("1e-5,2", "up to 1"),
                         ("1e-5,1e-5", "twice"), ("nan,1e-5", "above 0")):  # fmt: skip
        with pytest.raises(ConfigError, match=words):
            read_rates(wrong)


def test_a_short_run_is_evaluated_five_times() -> None:
    every = [eval_steps_of(TrainingConfig(query_set="any"), steps) for steps in (5000, 2500, 499, 18, 5, 1)]
    assert every == [500, 500, 100, 4, 1, 1]


def test_the_grid_is_the_papers_where_it_holds_the_retrievers_rate() -> None:
    assert grid(2e-6) == grid(5e-6) == RATES
    assert grid(5e-3) == tuple(pytest.approx(5e-3 * factor) for factor in AROUND)
