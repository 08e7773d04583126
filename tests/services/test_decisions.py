"""What target queries bring along: their kind of task, and doubts about their language."""

from __future__ import annotations

import pytest

from cdp.base.workspace import Workspace
from cdp.studies import target_queries


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_a_known_benchmark_brings_its_kind_of_task(workspace: Workspace) -> None:
    queries = target_queries.profile_benchmark(workspace, "demo", split="test")
    assert (queries.task, queries.benchmark) == ("", "demo:test")


@pytest.mark.slow
def test_queries_in_another_script_are_no_ground_for_an_answer() -> None:
    """Three of four queries are Georgian, which nothing counts: no content word as English; the fourth has three."""
    texts = ["ვინ დაწერა ეს წიგნი", "როდის დასრულდა ომი", "nato usa europe", "სად არის ქალაქი"] * 20
    queries = target_queries.profile_texts(texts, language="en")
    answer = queries.recommend(task="multi-hop")
    assert answer.advice.startswith("75% of the queries have no content word when counted as English")
    assert answer.scope.outside
