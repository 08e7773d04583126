"""Means of a comparison: over the same benchmarks for everyone, with their coverage; groups as the paper has them."""

from __future__ import annotations

import pytest

from cdp.base.statistics import holm
from cdp.base.workspace import Workspace
from cdp.benchmarks.registry import groups
from cdp.services import results
from cdp.services.result_tables import paper_table
from cdp.services.results import Comparison
from tests.services.support import evaluation

pytestmark = pytest.mark.slow

LOW, HIGH = {"q1": 0.2, "q2": 0.4}, {"q1": 0.6, "q2": 0.8}


def means(found: Comparison) -> dict[str, dict[str, tuple[float | None, str]]]:
    """{mean: {retriever: (value, coverage)}} of the paper's table."""
    table = paper_table(found)
    return {
        column.removesuffix(" mean"): {
            name: (None if cells[i].value is None else round(cells[i].value, 3), cells[i].remark)
            for name, cells in table.rows
        }
        for i, column in enumerate(table.columns)
        if "mean" in column.lower()
    }


def test_a_mean_runs_over_the_benchmarks_that_all_have(workspace: Workspace) -> None:
    evaluation(workspace, "base", "one", LOW)
    evaluation(workspace, "base", "two", HIGH)
    evaluation(workspace, "better", "one", HIGH)
    found = results.compare(workspace, "base")
    assert means(found) == {"Mean (1 of 2)": {"base": (30, ""), "better": (70, "")}}
    assert means(found.on(["two"])) == {}


def test_without_a_shared_benchmark_there_is_no_mean(workspace: Workspace) -> None:
    evaluation(workspace, "base", "one", LOW)
    evaluation(workspace, "other", "two", HIGH)
    assert means(results.compare(workspace, "base")) == {}


def test_groups_are_the_registrys_where_two_members_were_evaluated(workspace: Workspace) -> None:
    for name, split in (("2wikimultihopqa", "dev"), ("musique", "dev"), ("scifact", "test"), ("mine", "test")):
        evaluation(workspace, "base", name, LOW, split=split)
    evaluation(workspace, "better", "mine", HIGH)
    evaluation(workspace, "better", "musique", HIGH, split="dev")
    found = means(results.compare(workspace, "base"))
    assert found == {
        "Multi-hop": {"base": (30, "2/4"), "better": (70, "1/4")},
        "Mean (2 of 4)": {"base": (30, ""), "better": (70, "")},
    }


def test_another_split_or_a_sample_counts_in_no_group(workspace: Workspace) -> None:
    for name, split in (("musique", "train"), ("2wikimultihopqa", "dev"), ("hotpotqa_sample", "test")):
        evaluation(workspace, "base", name, LOW, split=split)
    assert list(means(results.compare(workspace, "base"))) == ["Mean (3 of 3)"]


def test_hotpotqa_counts_in_both_of_its_groups(workspace: Workspace) -> None:
    for name, split in (("hotpotqa", "test"), ("scifact", "test"), ("musique", "dev")):
        evaluation(workspace, "base", name, LOW, split=split)
    found = means(results.compare(workspace, "base"))
    assert {title: of["base"][1] for title, of in found.items()} == {
        "BEIR": "2/14", "Multi-hop": "2/4", "Mean (3 of 3)": "",
    }  # fmt: skip


def test_all_of_beir_is_fourteen_of_fourteen(workspace: Workspace) -> None:
    """Its twelve forums are one member, by their mean."""
    names = [*groups()["BEIR"], *groups()["CQADupStack"]]
    for number, name in enumerate(name for name in names if name != "cqadupstack"):
        evaluation(workspace, "base", name, LOW if number else HIGH)
    value, coverage = means(results.compare(workspace, "base"))["BEIR"]["base"]
    assert (value, coverage) == (pytest.approx((13 * 30 + 70) / 14, abs=1e-3), "")


def test_protocols_have_means_of_their_own(workspace: Workspace) -> None:
    for protocol, values in (("published", LOW), ("paper", HIGH)):
        for name in ("scifact", "fiqa"):
            evaluation(workspace, "base", name, values, protocol=protocol)
    found = means(results.compare(workspace, "base"))
    assert found["BEIR"]["base"] == (30, "2/14")
    assert found["BEIR (paper)"]["base"] == (70, "2/14")


def test_earlier_judgments_of_one_name_stand_apart(workspace: Workspace) -> None:
    old, new = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"
    evaluation(workspace, "base", "scifact", LOW, created=old)
    evaluation(workspace, "base", "scifact", HIGH, created=new, judgments="corrected")
    evaluation(workspace, "other", "scifact", HIGH, created=old)
    found = results.compare(workspace, "base")
    earlier = next(row.place for row in found.rows if row.version)
    assert earlier.startswith("scifact (earlier version ")
    assert {(row.retriever_id, row.place): round(row.ndcg) for row in found.rows} == {
        ("base", "scifact"): 70,
        ("base", earlier): 30,
        ("other", earlier): 70,
    }
    assert {row.place for row in found.rows if row.difference is not None} == {earlier}
    assert list(means(found)) == ["Mean (1 of 2)"]


def test_the_forums_of_cqadupstack_have_their_mean(workspace: Workspace) -> None:
    for name in ("cqadupstack-physics", "cqadupstack-unix", "mine"):
        evaluation(workspace, "base", name, LOW)
        evaluation(workspace, "better", name, HIGH if name == "cqadupstack-unix" else LOW)
    found = means(results.compare(workspace, "base"))
    assert found["CQADupStack"] == {"base": (30, "2/12"), "better": (50, "2/12")}
    assert "BEIR" not in found


def test_a_filter_keeps_the_named_benchmarks_and_counts_anew(workspace: Workspace) -> None:
    for name in ("one", "two"):
        evaluation(workspace, "base", name, LOW)
    evaluation(workspace, "better", "one", HIGH)
    whole = results.compare(workspace, "base")
    found = whole.on(["two"])
    assert [(row.benchmark, row.retriever_id) for row in found.rows] == [("two", "base")]


def test_p_values_are_corrected_for_all_differences_of_the_comparison(workspace: Workspace) -> None:
    before = {f"q{i}": 0.1 * (i % 5) for i in range(30)}
    evaluation(workspace, "base", "one", before)
    for name, step in (("a", 0.02), ("b", 0.2), ("c", 0.001)):
        evaluation(workspace, name, "one", {q: v + step * (i % 3) for i, (q, v) in enumerate(before.items())})
    rows = [row for row in results.compare(workspace, "base").rows if row.p_t is not None]
    assert len(rows) == 3
    assert [row.p_holm for row in rows] == pytest.approx(holm([row.p_t for row in rows if row.p_t is not None]))


def test_earlier_judgments_are_told_also_where_no_newer_ones_are_compared(workspace: Workspace) -> None:
    old, new = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"
    for name in ("base", "other"):
        evaluation(workspace, name, "scifact", LOW, created=old)
    evaluation(workspace, "newer", "scifact", HIGH, created=new, judgments="corrected")
    places = {row.place for row in results.compare(workspace, "base", ["other"]).rows}
    assert [place.startswith("scifact (earlier version ") for place in places] == [True]
