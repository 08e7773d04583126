"""What lies outside the evidence gets no number from the line, and what happened on similar datasets instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

from cdp.principle import ALL, KINDS, differences, kinds_of_datasets, most_similar, outlook, recommend
from cdp.principle.tables import read


@pytest.mark.parametrize(
    ("cw", "given", "reason"),
    [
        (34.4, {"task": "reasoning"}, "34.40 lies outside"),
        (34.4, {}, "34.40 lies outside"),
        (5.0, {"task": "multi-hop"}, "5.00 lies outside"),
        (8.4, {"task": "fact-checking"}, "not on fact checking"),
        (9.0, {"task": "multi-hop", "language": "zh"}, "fitted on English"),
        (9.0, {"task": "multi-hop", "generator": "mistral-7b-instruct"}, "not by mistral-7b-instruct"),
    ],
)
def test_outside_the_evidence_the_advice_says_so_and_the_line_is_silent(
    cw: float, given: dict[str, Any], reason: str
) -> None:
    found = recommend([cw] * 100, **given)
    assert found.advice.startswith("The published rule has no evidence for such a task")
    assert reason in found.advice
    assert found.expected == ()
    assert len(found.similar) == 5


def test_inside_the_evidence_nothing_is_taken_back() -> None:
    found = recommend([9] * 100, task="multi-hop", generator="gpt-4o-mini-2024-07-18")
    assert found.scope.inside
    assert found.by_rule


def test_an_unknown_kind_is_said_and_the_advice_rests_on_similar_datasets() -> None:
    found = recommend([9] * 100)
    assert not found.scope.inside
    assert found.caveats[0].startswith("The published rule covers multi-hop questions only")
    assert found.evidence() is not None


def test_every_published_dataset_has_a_kind() -> None:
    kinds = kinds_of_datasets()
    assert set(kinds) == {row["dataset"] for row in read("datasets")}
    assert set(kinds.values()) <= set(KINDS)
    assert [name for name, kind in kinds.items() if kind == "multi-hop"] == sorted(
        {d.dataset for d in differences()}, key=list(kinds).index
    )


def test_the_gains_of_similar_datasets_are_the_printed_ones() -> None:
    printed = {
        (row["dataset"], row["retriever"], row["queries_per_doc"]): row["value"]
        for row in read("results")
        if row["table"] in ("tab:scaling_full", "tab:multihop_scaling") and row["dataset"]
    }
    seen = most_similar(34.4, "reasoning", n=31)
    assert len(seen) == 29, "all but the two in-domain ones"
    for similar in seen:
        for retriever, gains in similar.gains.items():
            for per_doc, points in gains.items():
                scores = [printed[similar.dataset, retriever, m] for m in (per_doc, 1)]
                assert points == pytest.approx(scores[0] - scores[1])
    biology = next(s for s in seen if s.dataset == "biology")
    assert biology.gains["Contriever"][10] == pytest.approx(2.28)
    assert biology.gains["RetroMAE"][10] == pytest.approx(3.30)


def test_kind_comes_before_cw_and_the_dataset_itself_before_both() -> None:
    assert all(s.same_kind for s in most_similar(34.4, "reasoning"))
    assert [s.dataset for s in most_similar(9.0, "multi-hop")][:4] == [
        "musique",
        "hotpotqa",
        "novelhopqa",
        "2wikimultihopqa",
    ]
    by_cw = most_similar(8.4)
    assert {s.dataset for s in by_cw} >= {"scifact", "hotpotqa", "musique", "scidocs"}
    assert most_similar(60.0, "fact-checking", dataset="arguana")[0].same_dataset


def test_the_outlook_is_students_prediction() -> None:
    similar = most_similar(34.4, "reasoning")
    for found in outlook(similar):
        values = np.array([np.mean([g[found.per_doc] for g in s.gains.values()]) for s in similar])
        scale = values.std(ddof=1) * (1 + 1 / 5) ** 0.5
        assert (found.low, found.high) == pytest.approx(scipy.stats.t.interval(0.95, 4, values.mean(), scale))
        assert found.probability == pytest.approx(scipy.stats.t.sf(0, 4, values.mean(), scale))
    assert outlook(similar[:1]) == ()


def test_what_similar_datasets_say_holds_for_those_left_out() -> None:
    """95% prediction intervals from the five most like each published dataset, itself left out: they hold."""
    kinds = kinds_of_datasets()
    gains: dict[tuple[str, int], list[float]] = {}
    cw = {}
    for d in differences(ALL):
        gains.setdefault((d.dataset, d.per_doc), []).append(d.points)
        cw[d.dataset] = d.cw
    inside = [
        found.low <= np.mean(gains[name, found.per_doc]) <= found.high
        for name in cw
        for found in outlook(most_similar(cw[name], kinds[name], leave_out=[name]))
    ]
    assert len(inside) == 31 * 4
    assert 0.89 <= np.mean(inside) <= 1.0
