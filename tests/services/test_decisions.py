"""What a recommendation comes to: a study that can be planned as it stands."""

from __future__ import annotations

import pytest

from cdp.base.workspace import Workspace
from cdp.services import complexity, decide, demo, studies
from cdp.studies import read_plan


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    demo.load(workspace)
    return workspace


@pytest.mark.slow
def test_the_study_of_a_recommendation_can_be_planned_as_it_stands(filled: Workspace) -> None:
    queries = complexity.profile_benchmark(filled, "demo", split="test")
    answer = queries.recommend(task="multi-hop")
    settings, command = decide.next_study(queries, answer, "demo")
    assert f"study plan {answer.plan}" in command
    config = read_plan(answer.plan, settings)
    plan = studies.plan(filled, config)
    assert (config.benchmarks, config.per_doc) == ("demo:test", answer.experiment.changes["per_doc"])
    assert len(plan.conditions) == 2 * 3, "two ways of training, three seeds each"


def test_a_known_benchmark_brings_its_kind_of_task(filled: Workspace) -> None:
    queries = complexity.profile_benchmark(filled, "demo", split="test")
    assert (queries.dataset, queries.task, queries.benchmark) == ("", "", "demo:test")


def test_queries_in_another_script_are_no_ground_for_an_answer() -> None:
    """Three of four queries are Russian and have no content word counted as English; the fourth has three."""
    texts = ["кто написал эту книгу", "когда закончилась война", "nato usa europe", "где находится город"] * 20
    queries = complexity.profile_texts(texts, language="en")
    answer = queries.recommend(task="multi-hop")
    assert answer.advice.startswith("75% of the queries have no content word when counted as English")
    assert answer.expected == ()
    assert not answer.scope.inside
