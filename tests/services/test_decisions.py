"""What a recommendation comes to: a price from the corpus at hand, and a study that can be planned as it stands."""

from __future__ import annotations

import pytest

from cdp.base.config import SynthesisConfig
from cdp.base.workspace import Workspace
from cdp.services import complexity, decisions, demo, studies, synthesis
from cdp.services.synthesis import Writer


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    demo.load(workspace)
    return workspace


@pytest.mark.slow
def test_the_study_of_a_decision_can_be_planned_as_it_stands(filled: Workspace) -> None:
    queries = complexity.profile_benchmark(filled, "demo", split="test")
    answer = queries.recommend(task="multi-hop")
    found = decisions.decide(filled, queries, answer, corpus="demo")
    assert found.missing == ""
    assert f"study plan {answer.plan}" in found.command
    config = studies.read_plan(found.plan, found.settings)
    plan = studies.plan(filled, config)
    assert (config.benchmarks, config.per_doc) == ("demo:test", answer.experiment.changes["per_doc"])
    assert len(plan.conditions) == 2 * 3, "two ways of training, three seeds each"


def test_the_price_is_the_estimate_on_the_corpus(filled: Workspace) -> None:
    queries = complexity.profile_benchmark(filled, "demo", split="test")
    answer = queries.recommend(task="multi-hop")
    recorded = decisions.decide(filled, queries, answer, corpus="demo")
    assert recorded.price == "Price: free, with recorded answers (last used here)."
    assert recorded.settings["generator"] == "recorded"
    chosen = Writer.of({"generator": "openai", "model": "gpt-4.1"})
    found = decisions.decide(filled, queries, answer, corpus="demo", chosen=chosen)
    values = {"corpus": "demo", "method": "diverse", "per_doc": answer.suggestion.per_doc, "generator": "openai"}
    cost = synthesis.estimate(filled, SynthesisConfig.from_dict({**values, "model": "gpt-4.1"})).cost
    assert f"about {synthesis.dollars(cost)} with gpt-4.1 (chosen here) for 96 documents of demo" in found.price
    unknown = Writer.of({"generator": "openai", "model": "nobody-knows"})
    unpriced = decisions.decide(filled, queries, answer, corpus="demo", chosen=unknown)
    assert "price table has no nobody-knows" in unpriced.price
    for part in (answer.suggestion.text, found.price, answer.suggestion.sure, answer.experiment.text):
        assert part in found.sentence


def test_without_a_corpus_or_judgments_it_says_what_is_missing(workspace: Workspace) -> None:
    queries = complexity.profile_texts(["which treaty ended the war that began when the bridge opened"] * 60)
    found = decisions.decide(workspace, queries, queries.recommend())
    assert "per 1,000 documents of 120 words" in found.price
    assert found.missing.startswith("It still needs a corpus to write queries for and a benchmark")
    assert "benchmarks" not in found.settings


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
