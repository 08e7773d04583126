"""What lies outside the evidence gets no advice from the line."""

from __future__ import annotations

from typing import Any

import pytest

from cdp.principle import KINDS, differences, kinds_of_datasets, recommend
from cdp.principle.tables import read


@pytest.mark.parametrize(
    ("cw", "given", "reason"),
    [
        (34.4, {"task": "reasoning"}, "34.40 lies outside"),
        (34.4, {}, "34.40 lies outside"),
        (5.0, {"task": "multi-hop"}, "5.00 lies outside"),
        (8.4, {"task": "fact-checking"}, "not on fact checking"),
        (9.0, {"task": "multi-hop", "language": "zh"}, "fitted on English"),
    ],
)
def test_outside_the_evidence_the_advice_says_so_and_the_line_is_silent(
    cw: float, given: dict[str, Any], reason: str
) -> None:
    found = recommend([cw] * 100, **given)
    assert found.advice.startswith("The published rule has no evidence for such a task")
    assert reason in found.advice


def test_inside_the_evidence_nothing_is_taken_back() -> None:
    found = recommend([9] * 100, task="multi-hop")
    assert (found.scope.outside, found.scope.unknown) == ((), ())
    assert found.by_rule


def test_an_unknown_kind_is_said() -> None:
    found = recommend([9] * 100)
    assert found.scope.unknown
    assert found.caveats[0].startswith("The published rule covers multi-hop questions only")
    assert found.evidence() is not None


def test_the_advice_for_an_unknown_kind_is_conditional() -> None:
    found = recommend([11] * 56)
    assert found.by_rule
    assert found.advice.startswith("If these are multi-hop questions: this task is likely to gain")


def test_outside_the_line_the_type_of_task_is_no_reason() -> None:
    for cw in (5, 20):
        found = recommend([cw] * 100)
        assert not found.by_rule
        assert f"{cw:.2f} lies outside" in found.advice
        assert not any("task type" in caveat for caveat in found.caveats)


def test_every_published_dataset_has_a_kind() -> None:
    kinds = kinds_of_datasets()
    assert set(kinds) == {row["dataset"] for row in read("datasets")}
    assert set(kinds.values()) <= set(KINDS)
    assert [name for name, kind in kinds.items() if kind == "multi-hop"] == sorted(
        {d.dataset for d in differences()}, key=list(kinds).index
    )
