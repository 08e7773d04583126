"""Means of a comparison: over the same benchmarks for everyone, with their coverage; groups as the paper has them."""

from __future__ import annotations

from functools import partial

import pytest

from cdp.base.statistics import holm
from cdp.base.workspace import Workspace
from cdp.benchmarks.registry import groups
from cdp.results.differences import Comparison
from cdp.results.paper import paper_table
from tests.services.support import Scenarios, evaluation

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


OLD, NEW = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"
BEFORE = {f"q{i}": 0.1 * (i % 5) for i in range(30)}
STEPS = (("a", 0.02), ("b", 0.2), ("c", 0.001))


def fill(workspace: Workspace) -> dict[str, list[str]]:
    add = partial(evaluation, workspace)
    beir = [name for name in (*groups()["BEIR"], *groups()["CQADupStack"]) if name != "cqadupstack"]
    one, two, better = add("base", "one", LOW), add("base", "two", HIGH), add("better", "one", HIGH)
    multi_hop = {name: add("base", name, LOW, split="dev") for name in ("2wikimultihopqa", "musique")}
    scifact, mine, hotpotqa = (add("base", name, LOW, created=OLD) for name in ("scifact", "mine", "hotpotqa"))
    earlier = [scifact, add("base", "scifact", HIGH, created=NEW, judgments="corrected"),
               add("other", "scifact", HIGH, created=OLD)]  # fmt: skip
    forums = ("cqadupstack-physics", "cqadupstack-unix")
    return {
        "two of three": [one, two, better],
        "none shared": [one, add("other", "two", HIGH)],
        "groups": [*multi_hop.values(), scifact, mine, add("better", "mine", HIGH),
                   add("better", "musique", HIGH, split="dev")],
        "no group": [add("base", "musique", LOW, split="train"), multi_hop["2wikimultihopqa"],
                     add("base", "hotpotqa_sample", LOW)],
        "two groups": [hotpotqa, scifact, multi_hop["musique"]],
        # Its twelve forums are one member, by their mean.
        "all of BEIR": [add("base", name, LOW if number else HIGH) for number, name in enumerate(beir)],
        "protocols": [add("base", name, values, protocol=protocol)
                      for protocol, values in (("published", LOW), ("paper", HIGH)) for name in ("scifact", "fiqa")],
        "earlier": earlier,
        "earlier alone": [scifact, earlier[2], add("newer", "scifact", HIGH, created=NEW, judgments="corrected")],
        "forums": [*(add("base", name, LOW) for name in forums), mine, add("better", "mine", LOW),
                   *(add("better", name, HIGH if name.endswith("unix") else LOW) for name in forums)],
        "three tests": [add("base", "one", BEFORE),
                        *(add(name, "one", {q: v + step * (i % 3) for i, (q, v) in enumerate(BEFORE.items())})
                          for name, step in STEPS)],
    }  # fmt: skip


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Scenarios:
    return Scenarios(Workspace(tmp_path_factory.mktemp("means") / "workspace"), fill)


def test_a_mean_runs_over_the_benchmarks_that_all_have(scenarios: Scenarios) -> None:
    found = scenarios.compare("two of three")
    assert means(found) == {"Mean (1 of 2)": {"base": (30, ""), "better": (70, "")}}
    two = found.on(["two"])
    assert [(row.benchmark, row.retriever_id) for row in two.rows] == [("two", "base")]
    assert means(two) == {}
    assert means(scenarios.compare("none shared")) == {}


def test_groups_are_the_registrys_where_two_members_were_evaluated(scenarios: Scenarios) -> None:
    assert means(scenarios.compare("groups")) == {
        "Multi-hop": {"base": (30, "2/4"), "better": (70, "1/4")},
        "Mean (2 of 4)": {"base": (30, ""), "better": (70, "")},
    }
    assert list(means(scenarios.compare("no group"))) == ["Mean (3 of 3)"], "another split, and a sample"
    both = means(scenarios.compare("two groups"))
    assert {title: of["base"][1] for title, of in both.items()} == {
        "BEIR": "2/14", "Multi-hop": "2/4", "Mean (3 of 3)": "",
    }  # fmt: skip


def test_all_of_beir_is_fourteen_of_fourteen(scenarios: Scenarios) -> None:
    value, coverage = means(scenarios.compare("all of BEIR"))["BEIR"]["base"]
    assert (value, coverage) == (pytest.approx((13 * 30 + 70) / 14, abs=1e-3), "")


def test_protocols_have_means_of_their_own(scenarios: Scenarios) -> None:
    found = means(scenarios.compare("protocols"))
    assert found["BEIR"]["base"] == (30, "2/14")
    assert found["BEIR (paper)"]["base"] == (70, "2/14")


def test_earlier_judgments_of_one_name_stand_apart(scenarios: Scenarios) -> None:
    found = scenarios.compare("earlier")
    earlier = next(row.place for row in found.rows if row.version)
    assert earlier.startswith("scifact (earlier version ")
    assert {(row.retriever_id, row.place): round(row.ndcg) for row in found.rows} == {
        ("base", "scifact"): 70,
        ("base", earlier): 30,
        ("other", earlier): 70,
    }
    assert {row.place for row in found.rows if row.difference is not None} == {earlier}
    assert list(means(found)) == ["Mean (1 of 2)"]
    # Also where no newer ones are compared.
    places = {row.place for row in scenarios.compare("earlier alone", retrievers=["other"]).rows}
    assert [place.startswith("scifact (earlier version ") for place in places] == [True]


def test_the_forums_of_cqadupstack_have_their_mean(scenarios: Scenarios) -> None:
    found = means(scenarios.compare("forums"))
    assert found["CQADupStack"] == {"base": (30, "2/12"), "better": (50, "2/12")}
    assert "BEIR" not in found


def test_p_values_are_corrected_for_all_differences_of_the_comparison(scenarios: Scenarios) -> None:
    rows = [row for row in scenarios.compare("three tests").rows if row.p_t is not None]
    assert len(rows) == 3
    assert [row.p_holm for row in rows] == pytest.approx(holm([row.p_t for row in rows if row.p_t is not None]))
