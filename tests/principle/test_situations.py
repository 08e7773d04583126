"""The answer says in every situation of ``situations.yaml`` what the table asks for."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cdp.principle import decide
from cdp.principle.decide import Decision
from cdp.principle.evidence import Evidence, Task
from cdp.principle.options import cost
from tests.principle.situations import evidence_of, situations, study, task_of

SITUATIONS = situations()
NUMBER = re.compile(r"[+−]?\d+\.\d")


def answer_of(situation: dict[str, Any]) -> Decision:
    return decide(evidence_of(situation), task_of(situation))


def same_but_for_interval(expected: str, given: str, half: list[float]) -> None:
    """The sentence is the expected one; figures agree to a tenth, and the interval has about the expected width."""
    names = re.findall(r"\{(low|high)\}|([+−]?\d+\.\d)", expected)
    pattern = NUMBER.sub("#", re.sub(r"\{(low|high)\}", "#", expected))
    assert NUMBER.sub("#", given) == pattern
    values = [float(text.replace("−", "-")) for text in NUMBER.findall(given)]
    bounds: dict[str, float] = {}
    for (bound, figure), value in zip(names, values, strict=True):
        if figure:
            assert value == pytest.approx(float(figure.replace("−", "-")), abs=0.11)
        elif bound in bounds:
            assert value == pytest.approx(bounds[bound])
        else:
            bounds[bound] = value
    if bounds:
        assert half[0] <= (bounds["high"] - bounds["low"]) / 2 <= half[1]


@pytest.mark.parametrize("situation", SITUATIONS, ids=[s["situation"] for s in SITUATIONS])
def test_the_answer(situation: dict[str, Any]) -> None:
    if reason := situation.get("not yet"):
        pytest.skip(reason)
    answer = answer_of(situation)
    if "headline" in situation:
        same_but_for_interval(situation["headline"], answer.headline, situation.get("half", [0, 0]))
    assert len(answer.headline.split()) <= 25
    kind, _, per_doc = situation["choice"].partition(" ")
    assert (answer.choice.kind or "none", answer.choice.per_doc) == (kind, int(per_doc or 0))
    assert answer.badge == situation["badge"]
    assert (answer.basis.name if answer.basis else "") == situation.get("leads", "Test on my documents")
    for part, limit in zip(situation.get("limits", []), answer.limits, strict=True):
        assert part in limit
    for part in situation.get("findings", []):
        assert any(part in finding for finding in answer.findings), (part, answer.findings)
    for part, finding in zip(situation.get("first", []), answer.findings, strict=False):
        assert finding.startswith(part)
    everything = " ".join([answer.headline, *answer.findings, *answer.limits, answer.rule])
    for part in [*situation.get("never", []), "chance"]:
        assert part not in everything
    assert situation.get("rule", "") in answer.rule
    assert bool(answer.rule) == bool(situation.get("rule"))
    if "settle" in situation:
        least, most = situation["settle"]
        assert answer.settling is not None
        assert least <= answer.settling.queries <= most
        assert not answer.settled
    if "remedy" in situation:
        assert answer.settling is not None
        assert situation["remedy"] in answer.settling.text
    for sentence in [*answer.limits, *answer.findings]:
        assert len(sentence.split()) <= 25
    answer.to_dict()


@pytest.mark.parametrize("draw", range(6))
def test_a_choice_is_never_beaten_whatever_was_measured(draw: int) -> None:
    """Random means: the choice is beaten by none, what is not settled says "so far", and the order in which the options
    stand changes nothing."""
    random = np.random.default_rng(draw)
    names = ["untrained", "bm25", "hybrid", "diverse 1", "paraphrase 1", "diverse 5", "paraphrase 5", "human 2"]
    kept = [name for name in names if random.random() < 0.8 or name == "diverse 1" or name == "untrained"]
    evidence = study({name: float(random.normal(40, 3)) for name in kept}, n=int(random.integers(30, 2000)))
    answer = decide([evidence], Task())
    assert len(answer.headline.split()) <= 25
    chosen = [arm for arm in answer.options if (arm.kind, arm.per_doc) == (answer.choice.kind, answer.choice.per_doc)]
    assert chosen
    for arm in chosen:
        assert not any(c.low > 2 for c in answer.over(arm))
        assert not any(c.gains and cost(c.option) <= cost(arm) for c in answer.over(arm))
        assert answer.settled or answer.headline.startswith("So far")
    turned = decide([Evidence(evidence.basis, evidence.arms[::-1])], Task())
    assert (turned.choice, turned.settled) == (answer.choice, answer.settled)
