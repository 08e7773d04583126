"""A condition's name, what it is compared with, and the form in which it is written down."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cdp.base.condition import BM25, EQUAL_PAIRS, HYBRID, Condition, flat

FIVE = Condition("minilm", "diverse by gpt on wiki", 5, held=EQUAL_PAIRS)


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        (Condition("minilm"), "minilm"),
        (Condition(BM25), "BM25"),
        (Condition("", BM25), "BM25"),
        (Condition("minilm", HYBRID), "minilm · hybrid"),
        (Condition("minilm", HYBRID, fused=True), "minilm · with BM25"),
        (Condition("", "paraphrase", 5), "paraphrase × 5"),
        (Condition("minilm", "diverse"), "minilm · diverse"),
        (FIVE, "minilm · diverse by gpt on wiki × 5 · equal pairs"),
        (Condition("minilm", "diverse", 1, "cw@6", rate=2e-6), "minilm · diverse × 1 · cw@6 · learning rate 2e-6"),
        (Condition("minilm", "human", 1, layers=2, fused=True), "minilm · human × 1 · 2 layers · with BM25"),
        (Condition("a", "b", 1, loss="distil", query_source="multi-query"), "a · b × 1 · distil · multi-query"),
    ],
)
def test_every_condition_has_one_name(condition: Condition, name: str) -> None:
    assert condition.name == name


def test_a_control_differs_in_what_is_compared_alone() -> None:
    assert FIVE.single == FIVE._replace(per_doc=1, held="")
    assert FIVE.paraphrased == FIVE._replace(source="paraphrase by gpt on wiki")
    assert FIVE._replace(weighting="cw@6").equally_weighted == FIVE

    one = Condition("minilm", "paraphrase", 1)
    assert (one.single, one.paraphrased, one.equally_weighted) == (None, None, None)


def test_what_its_source_says() -> None:
    assert (FIVE.method, FIVE.kind) == ("diverse", "diverse by gpt")
    named = Condition("minilm", "questions on rivers", 1)
    assert named.kind == "questions on rivers", "the name of an imported set holds no corpus"


@pytest.mark.parametrize("unusual", [{"weighting": "cw"}, {"rate": 0.1}, {"loss": "distil"}, {"layers": 0}])
def test_a_usual_training_has_the_retrievers_own_settings(unusual: dict[str, float | str]) -> None:
    assert FIVE.usual
    assert FIVE._replace(fused=True).usual
    assert not FIVE._replace(**unusual).usual


def test_it_is_written_among_the_facts_of_what_holds_it() -> None:
    @dataclass
    class Holder:
        seed: int
        condition: Condition

    written = flat(Holder(3, FIVE))
    assert list(written)[:4] == ["seed", "retriever", "source", "per_doc"]
    assert Condition.of(written) == FIVE
    earlier = {"retriever": "minilm", "source": "diverse", "per_doc": 1, "seed": 0}
    assert Condition.of(earlier) == Condition("minilm", "diverse", 1)
