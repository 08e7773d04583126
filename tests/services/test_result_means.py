"""Means of a comparison: over the same benchmarks for everyone, with their coverage; groups as the paper has them."""

from __future__ import annotations

import pytest

from cdp.base.statistics import holm
from cdp.base.workspace import Workspace
from cdp.benchmarks.registry import leaves
from cdp.services import results
from cdp.services.result_tables import OWN, groups, paper_table, scores, shared_means
from tests.services.support import evaluation

pytestmark = pytest.mark.slow

LOW, HIGH = {"q1": 0.2, "q2": 0.4}, {"q1": 0.6, "q2": 0.8}


def group_means(workspace: Workspace) -> dict[str, dict[str, tuple[float | None, str]]]:
    """{group: {retriever: (mean, coverage)}} of the paper's table."""
    table = paper_table(results.compare(workspace, "base"))
    return {
        column.removesuffix(" mean"): {
            name: (None if cells[i].value is None else round(cells[i].value, 3), cells[i].coverage)
            for name, cells in table.rows
        }
        for i, column in enumerate(table.columns)
        if column.endswith(" mean")
    }


def test_a_mean_runs_over_the_benchmarks_that_all_have(workspace: Workspace) -> None:
    evaluation(workspace, "base", "one", LOW)
    evaluation(workspace, "base", "two", HIGH)
    evaluation(workspace, "better", "one", HIGH)
    coverage, values = shared_means(results.compare(workspace, "base"))
    assert (coverage, values) == ("1 of 2", pytest.approx({"base": 30, "better": 70}))


def test_without_a_shared_benchmark_there_is_no_mean(workspace: Workspace) -> None:
    evaluation(workspace, "base", "one", LOW)
    evaluation(workspace, "other", "two", HIGH)
    assert shared_means(results.compare(workspace, "base")) == ("0 of 2", {})


def test_groups_are_the_registrys_and_ones_own(workspace: Workspace) -> None:
    for name, split in (("2wikimultihopqa", "dev"), ("musique", "dev"), ("scifact", "test"), ("mine", "test")):
        evaluation(workspace, "base", name, LOW, split=split)
    evaluation(workspace, "better", "mine", HIGH)
    evaluation(workspace, "better", "musique", HIGH, split="dev")
    found = group_means(workspace)
    assert list(found) == ["BEIR", "Multi-hop"]
    assert found["BEIR"] == {"base": (30, "1/14"), "better": (None, "0/14")}
    assert found["Multi-hop"] == {"base": (30, "2/4"), "better": (70, "1/4")}
    assert groups(results.compare(workspace, "base").rows)[OWN] == ("mine",)


def test_the_group_of_a_benchmark(workspace: Workspace) -> None:
    expected = {
        "Multi-hop": {"HotpotQA", "musique dev"},
        "BEIR": {"nfcorpus", "HotpotQA"},
        "BRIGHT": {"biology", "bright-pony"},
        "NanoBEIR": {"nanoscifact"},
        "CQADupStack": {"cqadupstack-physics"},
        OWN: {"demo", "musique train", "hotpotqa_sample", "scifact-subset-50q-500d"},
    }
    for place in sorted(set().union(*expected.values())):
        name, _, split = place.partition(" ")
        evaluation(workspace, "base", name, LOW, split=split or "test")
    rows = results.compare(workspace, "base").rows
    places = {row.place for row in rows}
    assert {title: places.intersection(members) for title, members in groups(rows).items()} == expected


def test_hotpotqa_counts_in_both_of_its_groups(workspace: Workspace) -> None:
    for name in ("hotpotqa", "scifact"):
        evaluation(workspace, "base", name, LOW)
    found = groups(results.compare(workspace, "base").rows)
    assert {title: len(members) for title, members in found.items()} == {"BEIR": 14, "Multi-hop": 4}
    assert all("hotpotqa" in members for members in found.values())


def test_all_of_beir_is_fourteen_of_fourteen(workspace: Workspace) -> None:
    """Its twelve forums are one member, by their mean."""
    for number, leaf in enumerate(leaves("beir")):
        evaluation(workspace, "base", leaf.name, LOW if number else HIGH)
    value, coverage = group_means(workspace)["BEIR"]["base"]
    assert (value, coverage) == (pytest.approx((13 * 30 + 70) / 14, abs=1e-3), "")


def test_protocols_have_means_of_their_own(workspace: Workspace) -> None:
    for protocol, values in (("published", LOW), ("paper", HIGH)):
        evaluation(workspace, "base", "scifact", values, protocol=protocol)
    found = group_means(workspace)
    assert found["BEIR"]["base"] == (30, "1/14")
    assert found["BEIR (paper)"]["base"] == (70, "1/14")


def test_earlier_judgments_of_one_name_stand_apart(workspace: Workspace) -> None:
    old, new = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"
    evaluation(workspace, "base", "scifact", LOW, created=old)
    evaluation(workspace, "base", "scifact", HIGH, created=new, judgments="corrected")
    evaluation(workspace, "other", "scifact", HIGH, created=old)
    found = results.compare(workspace, "base")
    assert {(row.retriever_id, row.place): round(row.ndcg) for row in found.rows} == {
        ("base", "scifact"): 70,
        ("base", "scifact (earlier version)"): 30,
        ("other", "scifact (earlier version)"): 70,
    }
    assert {row.place for row in found.rows if row.difference is not None} == {"scifact (earlier version)"}
    assert shared_means(found)[0] == "1 of 2"


def test_the_forums_of_cqadupstack_have_their_mean(workspace: Workspace) -> None:
    for name in ("cqadupstack-physics", "cqadupstack-unix", "mine"):
        evaluation(workspace, "base", name, LOW)
        evaluation(workspace, "better", name, HIGH if name == "cqadupstack-unix" else LOW)
    found = group_means(workspace)
    assert found["CQADupStack"] == {"base": (30, "2/12"), "better": (50, "2/12")}
    assert "BEIR" not in found
    assert ("base", "cqadupstack") not in scores(results.compare(workspace, "base").rows)


def test_a_filter_keeps_the_named_benchmarks_and_counts_anew(workspace: Workspace) -> None:
    for name in ("one", "two"):
        evaluation(workspace, "base", name, LOW)
    evaluation(workspace, "better", "one", HIGH)
    whole = results.compare(workspace, "base")
    found = whole.on(["two"])
    assert [(row.benchmark, row.retriever_id) for row in found.rows] == [("two", "base")]
    assert shared_means(found)[0] == "1 of 1"


def test_p_values_are_corrected_for_all_differences_of_the_comparison(workspace: Workspace) -> None:
    before = {f"q{i}": 0.1 * (i % 5) for i in range(30)}
    evaluation(workspace, "base", "one", before)
    for name, step in (("a", 0.02), ("b", 0.2), ("c", 0.001)):
        evaluation(workspace, name, "one", {q: v + step * (i % 3) for i, (q, v) in enumerate(before.items())})
    rows = [row for row in results.compare(workspace, "base").rows if row.p_t is not None]
    assert len(rows) == 3
    assert [row.p_holm for row in rows] == pytest.approx(holm([row.p_t for row in rows if row.p_t is not None]))
