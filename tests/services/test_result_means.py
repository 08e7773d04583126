"""Means of a comparison: over the same benchmarks for everyone, with their coverage; groups as the paper has them."""

from __future__ import annotations

import pytest

from cdp.evaluation.significance import holm
from cdp.services import results
from cdp.services.result_means import ALL, OWN, group_members, group_of, means, only
from cdp.workspace import Workspace
from tests.services.support import evaluation

LOW, HIGH = {"q1": 0.2, "q2": 0.4}, {"q1": 0.6, "q2": 0.8}


def test_a_mean_runs_over_the_benchmarks_that_all_have(workspace: Workspace) -> None:
    evaluation(workspace, "base", "one", LOW)
    evaluation(workspace, "base", "two", HIGH)
    evaluation(workspace, "better", "one", HIGH)
    (mean,) = means(results.compare(workspace, "base"))
    assert (mean.group, mean.coverage) == (ALL, "1 of 2")
    assert mean.values == pytest.approx({"base": 30, "better": 70})


def test_without_a_shared_benchmark_there_is_no_mean(workspace: Workspace) -> None:
    evaluation(workspace, "base", "one", LOW)
    evaluation(workspace, "other", "two", HIGH)
    (mean,) = means(results.compare(workspace, "base"))
    assert (mean.coverage, mean.values) == ("0 of 2", {})


def test_groups_are_the_papers_and_ones_own(workspace: Workspace) -> None:
    for name in ("hotpotqa_sample", "musique", "scifact", "mine"):
        evaluation(workspace, "base", name, LOW)
    evaluation(workspace, "better", "mine", HIGH)
    found = {mean.group: mean for mean in means(results.compare(workspace, "base"))}
    assert list(found) == [ALL, "Multi-hop", "BEIR", OWN]
    assert found["Multi-hop"].coverage == "0 of 2"
    assert found[OWN].values == pytest.approx({"base": 30, "better": 70})


@pytest.mark.parametrize(
    ("benchmark", "group"),
    [
        ("HotpotQA", "Multi-hop"),
        ("nfcorpus", "BEIR"),
        ("biology", "BRIGHT"),
        ("demo", OWN),
        ("cqadupstack-physics", "CQADupStack"),
        ("nanoscifact", "NanoBEIR"),
    ],
)
def test_the_group_of_a_benchmark(benchmark: str, group: str) -> None:
    assert group_of(benchmark) == group


def test_the_forums_of_cqadupstack_have_their_mean(workspace: Workspace) -> None:
    for name in ("cqadupstack-physics", "cqadupstack-unix", "mine"):
        evaluation(workspace, "base", name, LOW)
        evaluation(workspace, "better", name, HIGH if name == "cqadupstack-unix" else LOW)
    found = {mean.group: mean for mean in means(results.compare(workspace, "base"))}
    assert found["CQADupStack"].values == pytest.approx({"base": 30, "better": 50})
    assert len(group_members(["cqadupstack-physics", "cqadupstack-unix"])["CQADupStack"]) == 12


def test_a_filter_keeps_the_named_benchmarks_and_counts_anew(workspace: Workspace) -> None:
    for name in ("one", "two"):
        evaluation(workspace, "base", name, LOW)
    evaluation(workspace, "better", "one", HIGH)
    whole = results.compare(workspace, "base")
    assert only(whole, []) is whole
    found = only(whole, ["two"])
    assert [(row.benchmark, row.retriever_id) for row in found.rows] == [("two", "base")]
    assert (found.coverage, found.n_benchmarks) == ({"base": 1}, 1)


def test_p_values_are_corrected_for_all_differences_of_the_comparison(workspace: Workspace) -> None:
    before = {f"q{i}": 0.1 * (i % 5) for i in range(30)}
    evaluation(workspace, "base", "one", before)
    for name, step in (("a", 0.02), ("b", 0.2), ("c", 0.001)):
        evaluation(workspace, name, "one", {q: v + step * (i % 3) for i, (q, v) in enumerate(before.items())})
    rows = [row for row in results.compare(workspace, "base").rows if row.p_t is not None]
    assert len(rows) == 3
    assert [row.p_holm for row in rows] == pytest.approx(holm([row.p_t for row in rows if row.p_t is not None]))
