"""Comparing retrievers: over the same queries, with intervals, and never against other judgments."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
import scipy

from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, load_benchmark
from cdp.benchmarks.subsets import sample
from cdp.services import result_tables, results
from tests.benchmarks.folders import write_benchmark
from tests.services.support import evaluation

BEFORE = {"q1": 0.2, "q2": 0.5, "q3": 0.9, "q4": 0.0}
AFTER = {"q1": 0.6, "q2": 0.5, "q3": 0.8, "q4": 0.4}


def test_differences_are_over_the_same_queries(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BEFORE)
    evaluation(workspace, "better", "bench", AFTER)
    baseline, other = results.compare(workspace, "base").rows
    assert (baseline.retriever_id, baseline.difference) == ("base", None)
    assert other.ndcg == pytest.approx(57.5)
    assert other.difference == pytest.approx(17.5)
    assert other.low is not None
    assert other.low <= 17.5 <= other.high
    assert (other.wins, other.losses, other.ties) == (2, 1, 1)
    assert other.p_t == pytest.approx(scipy.stats.ttest_rel(list(AFTER.values()), list(BEFORE.values())).pvalue)


def test_other_judgments_are_not_compared(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BEFORE)
    evaluation(workspace, "other", "bench", AFTER, judgments="changed")
    rows = {row.retriever_id: row for row in results.compare(workspace, "base").rows}
    assert rows["other"].difference is None
    assert rows["other"].baseline_evaluation_id is None


def test_other_queries_are_not_compared(workspace: Workspace) -> None:
    """Of the same judgments by their hash, but not of the same queries: a difference would be of neither."""
    evaluation(workspace, "base", "bench", BEFORE)
    evaluation(workspace, "other", "bench", {query: AFTER[query] for query in ("q1", "q2")})
    row = results.compare(workspace, "base").rows[1]
    assert (row.retriever_id, row.ndcg, row.n_queries) == ("other", pytest.approx(55), 2)
    assert (row.difference, row.p_holm, row.baseline_evaluation_id) == (None, None, None)


def test_of_several_evaluations_the_newest_counts(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BEFORE, created="2026-01-01T00:00:00+00:00")
    newest = evaluation(workspace, "base", "bench", AFTER, created="2026-01-02T00:00:00+00:00")
    (row,) = results.compare(workspace, "base").rows
    assert row.evaluation_id == newest


def test_coverage_is_counted(workspace: Workspace) -> None:
    for benchmark in ("one", "two"):
        evaluation(workspace, "base", benchmark, BEFORE)
    evaluation(workspace, "better", "one", AFTER)
    table = result_tables.paper_table(results.compare(workspace, "base"))
    assert table.columns == ("one", "two", "Mean (1 of 2)")
    assert [cell.value is None for cell in dict(table.rows)["better"]] == [False, True, False]


def test_equal_names_are_told_apart(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BEFORE)
    for job in ("training-1", "training-2"):
        evaluation(workspace, job, "bench", AFTER, kind="job", name="mine")
    names = [row.retriever for row in results.compare(workspace, "base").rows]
    assert len(set(names)) == 3


def test_a_name_of_several_retrievers_is_refused(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BEFORE)
    for job in ("training-1", "training-2"):
        evaluation(workspace, job, "bench", AFTER, kind="job", name="mine")
    with pytest.raises(ConfigError, match="training-1, training-2"):
        results.compare(workspace, "mine")
    with pytest.raises(ConfigError, match="2 retrievers are called 'mine'"):
        results.compare(workspace, "base", ["mine"])


def test_no_difference_at_all_is_no_evidence(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BEFORE)
    evaluation(workspace, "same", "bench", BEFORE)
    same = results.compare(workspace, "base").rows[1]
    assert (same.difference, same.p_t, same.ties) == (0.0, 1.0, 4)


def test_query_by_query_starts_with_the_largest_loss(workspace: Workspace) -> None:
    first = evaluation(workspace, "base", "bench", BEFORE)
    second = evaluation(workspace, "better", "bench", AFTER)
    found = results.compare(workspace, "base")
    row = found.rows[1]
    assert (row.baseline_evaluation_id, row.evaluation_id) == (first, second)
    rows = results.per_query(workspace, found, row)
    assert [row.query_id for row in rows] == ["q3", "q2", "q1", "q4"]
    assert [row.difference for row in rows] == pytest.approx([-10, 0, 40, 40])


def test_csv_holds_every_row_in_full(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BEFORE)
    evaluation(workspace, "better", "bench", AFTER)
    comparison = results.compare(workspace, "base")
    rows = list(csv.DictReader(io.StringIO(result_tables.to_csv(comparison))))
    assert [float(row["ndcg"]) for row in rows] == [row.ndcg for row in comparison.rows]
    assert rows[0]["difference"] == ""


def test_an_unknown_baseline_offers_what_there_is(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BEFORE)
    with pytest.raises(NotFoundError, match="base"):
        results.compare(workspace, "nobody")


@pytest.mark.slow
def test_the_catalogue_can_be_lost_and_made_anew(workspace: Workspace) -> None:
    evaluation(workspace, "base", "bench", BEFORE)
    before = results.list_evaluations(workspace)
    workspace.catalog.write_bytes(b"this is no database")
    assert results.list_evaluations(workspace) == before
    results.rebuild(workspace)
    assert results.list_evaluations(workspace) == before


def test_the_interval_is_the_bootstrap_of_the_mean(workspace: Workspace) -> None:
    rng = np.random.default_rng(0)
    before = {f"q{i}": float(v) for i, v in enumerate(rng.random(400))}
    after = {q: min(1.0, v + float(d)) for (q, v), d in zip(before.items(), rng.normal(0.05, 0.2, 400), strict=True)}
    evaluation(workspace, "base", "bench", before)
    evaluation(workspace, "better", "bench", after)
    row = results.compare(workspace, "base").rows[1]
    deltas = 100 * (np.array(list(after.values())) - np.array(list(before.values())))
    half = 1.96 * deltas.std(ddof=1) / 20
    assert row.low is not None
    assert (row.low, row.high) == pytest.approx((deltas.mean() - half, deltas.mean() + half), abs=half * 0.15)


def test_what_was_sampled_is_told_and_only_that(workspace: Workspace, tmp_path: Path) -> None:
    add_benchmark(write_benchmark(tmp_path / "small"), workspace)
    made, _ = sample("small", workspace, queries=2, documents=3)
    for name in ("small", made.name):
        folder = workspace.benchmark(name)
        scores = dict.fromkeys(load_benchmark(folder).query_ids, 0.5)
        for retriever in ("base", "other"):
            evaluation(workspace, retriever, name, scores, judgments=load_benchmark(folder).hash)
    found = results.compare(workspace, "base")
    assert results.remarks(found.on(["small"]).rows) == []
    sampled, note = results.remarks(found.on([made.name]).rows)
    assert sampled == f"{made.name}: Evaluated on 2 sampled queries of small."
    assert ("higher than on the whole" in note) == (made.n_documents == 3)
