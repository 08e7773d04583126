"""Comparing retrievers: over the same queries, with intervals, and never against other judgments."""

from __future__ import annotations

import csv
import io
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy

from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, load_benchmark
from cdp.benchmarks.subsets import sample
from cdp.results import board, differences, paper
from cdp.services import evaluation as service
from tests.benchmarks.folders import write_benchmark
from tests.services.support import Scenarios, evaluation

pytestmark = pytest.mark.slow  # to open the catalogue takes longer than to compare

BEFORE = {"q1": 0.2, "q2": 0.5, "q3": 0.9, "q4": 0.0}
AFTER = {"q1": 0.6, "q2": 0.5, "q3": 0.8, "q4": 0.4}


CHANCE = np.random.default_rng(0)
MANY = {f"q{i}": float(v) for i, v in enumerate(CHANCE.random(400))}
BETTER = {q: min(1.0, v + float(d)) for (q, v), d in zip(MANY.items(), CHANCE.normal(0.05, 0.2, 400), strict=True)}


def fill(workspace: Workspace) -> dict[str, list[str]]:
    add = partial(evaluation, workspace)
    mine = [add(job, "bench", AFTER, kind="job", name="mine") for job in ("training-1", "training-2")]
    base, better, same, few = (
        add("base", "bench", BEFORE), add("better", "bench", AFTER), add("same", "bench", BEFORE),
        add("few", "bench", {query: AFTER[query] for query in ("q1", "q2")}),
    )  # fmt: skip
    return {
        "two": [base, better],
        "other judgments": [base, add("other", "bench", AFTER, judgments="changed")],
        "other queries": [base, few],
        "newest": [base, add("base", "bench", AFTER, created="2026-01-02T00:00:00+00:00")],
        "coverage": [base, better, add("base", "second", BEFORE)],
        "equal names": [base, *mine],
        "no difference": [base, same],
        "many queries": [add("base", "many", MANY), add("better", "many", BETTER)],
    }


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Scenarios:
    return Scenarios(Workspace(tmp_path_factory.mktemp("results") / "workspace"), fill)


def test_differences_are_over_the_same_queries(scenarios: Scenarios) -> None:
    found = scenarios.compare("two")
    baseline, other = found.rows
    assert (baseline.retriever_id, baseline.difference) == ("base", None)
    assert other.ndcg == pytest.approx(57.5)
    assert other.difference == pytest.approx(17.5)
    assert other.low is not None
    assert other.low <= 17.5 <= other.high
    assert (other.wins, other.losses, other.ties) == (2, 1, 1)
    assert other.p_t == pytest.approx(scipy.stats.ttest_rel(list(AFTER.values()), list(BEFORE.values())).pvalue)
    # Query by query, the largest loss first.
    assert [other.baseline_evaluation_id, other.evaluation_id] == scenarios.ids["two"]
    queries = differences.per_query(scenarios.workspace, found, other)
    assert [query.query_id for query in queries] == ["q3", "q2", "q1", "q4"]
    assert [query.difference for query in queries] == pytest.approx([-10, 0, 40, 40])
    rows = list(csv.DictReader(io.StringIO(paper.to_csv(found))))
    assert [float(row["ndcg"]) for row in rows] == [row.ndcg for row in found.rows]
    assert rows[0]["difference"] == ""


def test_other_judgments_are_not_compared(scenarios: Scenarios) -> None:
    rows = {row.retriever_id: row for row in scenarios.compare("other judgments").rows}
    assert rows["other"].difference is None
    assert rows["other"].baseline_evaluation_id is None


def test_other_queries_are_not_compared(scenarios: Scenarios) -> None:
    """Of the same judgments by their hash, but not of the same queries: a difference would be of neither."""
    row = scenarios.compare("other queries").rows[1]
    assert (row.retriever_id, row.ndcg, row.n_queries) == ("few", pytest.approx(55), 2)
    assert (row.difference, row.p_holm, row.baseline_evaluation_id) == (None, None, None)


def test_of_several_evaluations_the_newest_counts(scenarios: Scenarios) -> None:
    (row,) = scenarios.compare("newest").rows
    assert row.evaluation_id == scenarios.ids["newest"][1]


def test_coverage_is_counted(scenarios: Scenarios) -> None:
    table = paper.paper_table(scenarios.compare("coverage"))
    assert table.columns == ("bench", "second", "Mean (1 of 2)")
    assert [cell.value is None for cell in dict(table.rows)["better"]] == [False, True, False]


def test_equal_names_are_told_apart_and_refused(scenarios: Scenarios) -> None:
    names = [row.retriever for row in scenarios.compare("equal names").rows]
    assert len(set(names)) == 3
    with pytest.raises(ConfigError, match="training-1, training-2"):
        scenarios.compare("equal names", "mine")
    with pytest.raises(ConfigError, match="2 retrievers are called 'mine'"):
        scenarios.compare("equal names", "base", ["mine"])
    with pytest.raises(NotFoundError, match="base"):
        scenarios.compare("equal names", "nobody")


def test_no_difference_at_all_is_no_evidence(scenarios: Scenarios) -> None:
    same = scenarios.compare("no difference").rows[1]
    assert (same.difference, same.p_t, same.ties) == (0.0, 1.0, 4)


def test_the_interval_is_the_bootstrap_of_the_mean(scenarios: Scenarios) -> None:
    row = scenarios.compare("many queries").rows[1]
    deltas = 100 * (np.array(list(BETTER.values())) - np.array(list(MANY.values())))
    half = 1.96 * deltas.std(ddof=1) / 20
    assert row.low is not None
    assert (row.low, row.high) == pytest.approx((deltas.mean() - half, deltas.mean() + half), abs=half * 0.15)


def test_the_catalogue_can_be_lost_and_made_anew(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BEFORE)
    before = board.list_evaluations(workspace)
    workspace.catalog.write_bytes(b"this is no database")
    assert board.list_evaluations(workspace) == before
    service.rebuild(workspace)
    assert board.list_evaluations(workspace) == before


def test_what_was_sampled_is_told_and_only_that(workspace: Workspace, tmp_path: Path) -> None:
    add_benchmark(write_benchmark(tmp_path / "small"), workspace)
    made, _ = sample("small", workspace, queries=2, documents=3)
    for name in ("small", made.name):
        folder = workspace.benchmark(name)
        scores = dict.fromkeys(load_benchmark(folder).query_ids, 0.5)
        for retriever in ("base", "other"):
            evaluation(workspace, retriever, name, scores, judgments=load_benchmark(folder).hash)
    found = differences.compare(workspace, "base")
    assert board.remarks(found.on(["small"]).rows) == []
    sampled, note = board.remarks(found.on([made.name]).rows)
    assert sampled == f"{made.name}: Evaluated on 2 sampled queries of small."
    assert ("higher than on the whole" in note) == (made.n_documents == 3)
