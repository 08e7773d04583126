"""What target queries bring along: their kind of task, and doubts about their language."""

from __future__ import annotations

import pytest

from cdp.base.workspace import Workspace
from cdp.services import complexity, demo


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    demo.load(workspace)
    return workspace


def test_a_known_benchmark_brings_its_kind_of_task(filled: Workspace) -> None:
    queries = complexity.profile_benchmark(filled, "demo", split="test")
    assert (queries.task, queries.benchmark) == ("", "demo:test")


def test_queries_in_another_script_are_no_ground_for_an_answer() -> None:
    """Three of four queries are Russian and have no content word counted as English; the fourth has three."""
    texts = ["кто написал эту книгу", "когда закончилась война", "nato usa europe", "где находится город"] * 20
    queries = complexity.profile_texts(texts, language="en")
    answer = queries.recommend(task="multi-hop")
    assert answer.advice.startswith("75% of the queries have no content word when counted as English")
    assert answer.scope.outside
