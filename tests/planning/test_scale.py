"""The arithmetic of every stage, by hand; what is unknown; and that more work never takes less."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdp.planning.rates import Basis, Rate
from cdp.planning.scale import ScalePlan, scale_plan
from cdp.planning.stages import STAGES, UNITS, Stage
from cdp.planning.workload import Hardware, Model, Workload, Writer
from tests.strategies import examples

MODEL = Model("m", 768, 110_000_000, 3, 100)
LLM = Writer("gpt", "endpoint", 1, 1000, 400_000, 100_000, 1.25, "a list")
WORK = Workload(1000, 500.0, 5, 60.0, 100, MODEL, LLM)
ONE = Hardware(1, 2, 0)


def rate(stage: str, value: float, **facts: object) -> Rate:
    return dataclasses.replace(Rate(value, UNITS[stage], Basis.HERE, "a test", largest=1e18), **facts)  # type: ignore[arg-type]


RATES = {
    "reading": rate("reading", 1e6),
    "synthesis/gpt/cpu": rate("synthesis", 10.0, low=8.0, high=20.0),
    "measures/5": rate("measures", 2500.0),
    "encoding/m/cpu": rate("encoding", 50.0),
    "training/m/cpu": rate("training", 100.0),
    "search/cpu": rate("search", 7.68e7),
    "bm25": rate("bm25", 1e5),
}


def stage(plan: ScalePlan, name: str) -> Stage:
    return next(s for s in plan.stages if s.name == name)


def seconds(plan: ScalePlan) -> dict[str, float | None]:
    return {s.name: s.span.seconds if s.span else None for s in plan.stages}


def test_the_seconds_of_every_stage_by_hand() -> None:
    plan = scale_plan(WORK, ONE, RATES)
    assert seconds(plan) == {
        "reading": 0.5,  # 1,000 × 500 ÷ 1,000,000
        "synthesis": 100.0,  # 1,000 ÷ 10
        "measures": 2.0,  # 1,000 × 5 ÷ 2,500
        "encoding": 20.0,  # 1,000 ÷ 50
        "training": 150.0,  # 1,000 × 5 × 3 ÷ 100
        "search": 1.0,  # 1,000 × 100 × 768 ÷ 76,800,000
        "bm25": 5.0,  # 1,000 × 500 ÷ 100,000
    }
    assert plan.span.seconds == 278.5
    assert (plan.span.low, plan.span.high) == (228.5, 303.5)  # writing alone has a spread: 50 to 125
    assert plan.unknown == ()


def test_bytes_by_hand() -> None:
    plan = scale_plan(WORK, ONE, RATES)
    assert stage(plan, "reading").sizes.memory == 24_000
    assert stage(plan, "encoding").sizes.storage == 1000 * 768 * 4
    card = scale_plan(WORK, dataclasses.replace(ONE, gpus=1), RATES)
    assert stage(card, "encoding").sizes.storage == 1000 * 768 * 2
    assert stage(plan, "encoding").sizes.memory == 1000 * (500 + 49) + 4 * 110_000_000
    many = scale_plan(dataclasses.replace(WORK, documents=1_000_000), ONE, RATES)
    assert stage(many, "encoding").sizes.memory == 64 * 2**20 * (1 + 49 / 500) + 1e6 * 40 + 4.4e8
    assert stage(plan, "synthesis").sizes.storage == 1000 * 130 + 2 * 5000 * 60
    assert stage(plan, "synthesis").sizes.network == 4 * 500_000
    texts = 1000 * 500 + 5000 * 60
    assert stage(plan, "training").sizes.memory == texts + 49 * 6000 + texts / 4 * 8 + 16 * 110_000_000
    assert stage(plan, "search").sizes.memory == 8192 * 768 * 4 + 100 * (4 * 768 + 12 * 100)
    assert [s.name for s in plan.stages if s.sizes.network] == ["synthesis"]


def test_money_is_the_endpoints_and_the_machines() -> None:
    assert (scale_plan(WORK, ONE, RATES).dollars, scale_plan(WORK, ONE, RATES).priced) == (1.25, True)
    hired = scale_plan(WORK, dataclasses.replace(ONE, dollars_per_hour=36.0), RATES)
    assert hired.dollars == pytest.approx(1.25 + 278.5 * 36 / 3600)
    unpriced = dataclasses.replace(WORK, writer=dataclasses.replace(LLM, dollars=None))
    plan = scale_plan(unpriced, ONE, RATES)
    assert (plan.dollars, plan.priced) == (0.0, False)
    without = {key: r for key, r in RATES.items() if key != "training/m/cpu"}
    plan = scale_plan(WORK, dataclasses.replace(ONE, dollars_per_hour=36.0), without)
    assert plan.dollars > 1.25
    assert not plan.priced


def test_a_stage_without_a_rate_has_no_time_and_says_how_to_get_one() -> None:
    plan = scale_plan(WORK, dataclasses.replace(ONE, gpus=8), RATES)
    assert seconds(plan)["encoding"] is None
    assert plan.unknown == ("Encoding documents", "Training m", "Exact search")
    assert stage(plan, "encoding").basis == "unknown"
    assert any("--rates encoding=" in line for line in stage(plan, "encoding").arithmetic)
    assert any("4 of 7 stages" in note for note in plan.notes)
    nothing = scale_plan(WORK, ONE, {})
    assert (nothing.span.seconds, len(nothing.unknown)) == (0.0, 7)


def test_gpus_and_machines_divide_the_stages_that_are_divided_and_say_that_it_is_a_model() -> None:
    gpus = {**RATES, "encoding/m/gpu": RATES["encoding/m/cpu"], "training/m/gpu": RATES["training/m/cpu"],
            "search/gpu": RATES["search/cpu"]}  # fmt: skip
    plan = scale_plan(WORK, Hardware(2, 2, 5), gpus)
    assert seconds(plan) == {"reading": 0.5, "synthesis": 100.0, "measures": 2.0, "encoding": 2.0, "training": 15.0,
                             "search": 0.1, "bm25": 2.5}  # fmt: skip
    assert any("Divided by 10 GPUs without loss: a model" in note for note in stage(plan, "encoding").notes)
    # Ten devices, 150 steps of 100 pairs each: every step sends each parameter about twice, from every device but one.
    assert stage(plan, "training").sizes.network == 2 * 9 * 4 * 110_000_000 * 15
    assert stage(plan, "search").sizes.network == 10 * 100 * 100 * 12
    alone = scale_plan(WORK, Hardware(3, 2, 0), RATES)
    assert seconds(alone)["training"] == 150.0
    assert any("one machine trains" in note for note in stage(alone, "training").notes)


def test_beyond_the_largest_measurement_it_says_how_far() -> None:
    known = {**RATES, "encoding/m/cpu": rate("encoding", 50.0, largest=250.0)}
    notes = stage(scale_plan(WORK, ONE, known), "encoding").notes
    assert "The rate was never measured beyond 250 texts; here each machine has 4 times as much." in notes
    assert not any("beyond" in note for note in stage(scale_plan(WORK, ONE, RATES), "encoding").notes)


def test_measures_of_more_queries_per_document_are_taken_in_proportion() -> None:
    ten = scale_plan(dataclasses.replace(WORK, per_doc=10), ONE, RATES)
    assert seconds(ten)["measures"] == 8.0  # twice as many queries, each compared with twice as many
    assert any("Measured at Q/Doc 5" in note for note in stage(ten, "measures").notes)
    two = scale_plan(dataclasses.replace(WORK, per_doc=2), ONE, RATES)
    assert seconds(two)["measures"] == 0.8


def test_longer_texts_and_more_processors_are_taken_in_proportion_and_said_to_be() -> None:
    known = {**RATES, "encoding/m/cpu": rate("encoding", 50.0, low=40.0, high=100.0, characters=250.0, cpus=2)}
    here = stage(scale_plan(WORK, ONE, known), "encoding")
    assert here.span is not None
    assert here.span.seconds == 40.0
    assert any("250 characters" in note for note in here.notes)
    large = stage(scale_plan(WORK, Hardware(1, 8, 0), known), "encoding")
    assert large.span is not None
    # Four times the processors: 10 s expected; the slow end gains nothing from them.
    assert (large.span.seconds, large.span.low, large.span.high) == (10.0, 5.0, 50.0)


def test_a_job_takes_its_start_too() -> None:
    known = {**RATES, "starting": Rate(0.1, "starts", Basis.HERE, "")}
    assert seconds(scale_plan(WORK, ONE, known))["encoding"] == 30.0
    assert seconds(scale_plan(WORK, ONE, known))["reading"] == 0.5


def test_too_little_memory_is_said() -> None:
    plan = scale_plan(WORK, dataclasses.replace(ONE, memory_gb=1.0), RATES)
    assert any("Training m" in note and "More than 1 GB" in note for note in plan.notes)


def test_every_stage_names_a_unit() -> None:
    assert list(UNITS) == list(STAGES)


@examples(60)
@given(
    st.integers(1, 10**12), st.integers(1, 10**3), st.integers(1, 100), st.integers(1, 1000), st.integers(0, 16),
    st.floats(1, 1e5),
)  # fmt: skip
def test_more_documents_never_take_less_and_nothing_overflows(
    documents: int, more: int, per_doc: int, machines: int, gpus: int, characters: float
) -> None:
    small = Workload(documents, characters, per_doc, 60.0, 1000, MODEL, LLM)
    large = dataclasses.replace(small, documents=documents * more)
    hardware = Hardware(machines, 4, gpus, 64.0, 2.0)
    known = {**RATES, **{key.replace("/cpu", "/gpu"): r for key, r in RATES.items()}}
    first, second = scale_plan(small, hardware, known), scale_plan(large, hardware, known)
    for before, after in zip(first.stages, second.stages, strict=True):
        assert before.span is not None
        assert after.span is not None
        assert before.span.seconds <= after.span.seconds
        assert before.sizes.storage <= after.sizes.storage
        assert (before.sizes.memory or 0) <= (after.sizes.memory or 0)
        assert before.sizes.network <= after.sizes.network
    assert first.dollars <= second.dollars
    whole = second.span
    assert whole.low is not None
    assert whole.high is not None
    assert whole.low <= whole.seconds <= whole.high
    assert math.isfinite(whole.high)
    json.dumps(second.to_dict(), allow_nan=False)


@examples(40)
@given(st.integers(1, 10**9), st.integers(1, 500), st.integers(1, 20))
def test_more_machines_never_take_longer(documents: int, machines: int, times: int) -> None:
    work = dataclasses.replace(WORK, documents=documents)
    few = scale_plan(work, Hardware(machines, 4, 0), RATES)
    many = scale_plan(work, Hardware(machines * times, 4, 0), RATES)
    for before, after in zip(few.stages, many.stages, strict=True):
        assert before.span is not None
        assert after.span is not None
        assert after.span.seconds <= before.span.seconds
