"""What lies outside the evidence gets no number from the line, and what happened on similar datasets instead."""

from __future__ import annotations

from typing import Any

import pytest

from cdp.principle import KINDS, differences, kinds_of_datasets, most_similar, recommend
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
    assert (found.scope.outside, found.scope.unknown) == ((), ())
    assert found.by_rule


def test_an_unknown_kind_is_said_and_the_advice_rests_on_similar_datasets() -> None:
    found = recommend([9] * 100)
    assert found.scope.unknown
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
    assert all(s.kind == "reasoning" for s in most_similar(34.4, "reasoning"))
    assert [s.dataset for s in most_similar(9.0, "multi-hop")][:4] == [
        "musique",
        "hotpotqa",
        "novelhopqa",
        "2wikimultihopqa",
    ]
    by_cw = most_similar(8.4)
    assert {s.dataset for s in by_cw} >= {"scifact", "hotpotqa", "musique", "scidocs"}
    assert most_similar(60.0, "fact-checking", dataset="arguana")[0].dataset == "arguana"
