"""Rates: what they are made of, and what follows from them."""

from __future__ import annotations

from math import inf

import pytest

from cdp.base.errors import ConfigError
from cdp.planning.known import DEFAULT_SPEEDS, PUBLISHED
from cdp.planning.rates import Basis, Observation, Rate, Span, rate_of, read_user_rates, span, training_seconds
from cdp.planning.stages import UNITS


def made(*observed: tuple[float, float]) -> Rate | None:
    return rate_of([Observation(a, s) for a, s in observed], "texts", Basis.HERE, "three runs")


def test_a_rate_is_the_median_with_the_spread_and_the_largest_measurement() -> None:
    rate = made((100, 1.0), (400, 2.0), (300, 1.0))
    assert rate is not None
    assert (rate.value, rate.low, rate.high, rate.largest, rate.measurements) == (200.0, 100.0, 300.0, 400, 3)


def test_a_single_measurement_has_no_spread_and_none_makes_no_rate() -> None:
    rate = made((100, 1.0))
    assert rate is not None
    assert (rate.low, rate.high) == (None, None)
    assert made() is None
    assert made((100, 0.0), (0, 1.0), (inf, 1.0), (100, inf)) is None


def test_measurements_that_are_mostly_warming_up_are_left_out() -> None:
    rate = made((1000, 1.0), (99, 9.9))
    assert rate is not None
    assert (rate.value, rate.measurements) == (1000.0, 1)


def test_an_interval_is_between_the_fastest_and_the_slowest_measurement() -> None:
    rate = Rate(200.0, "texts", Basis.HERE, "", 100.0, 400.0)
    assert span(8000, rate, workers=4) == Span(10.0, 5.0, 20.0)
    assert span(8000, Rate(200.0, "texts", Basis.HERE, "")) == Span(40.0)


def test_spans_add_up_with_the_part_without_a_spread_on_both_ends() -> None:
    assert Span(10.0, 5.0, 20.0).plus(Span(3.0)) == Span(13.0, 8.0, 23.0)
    assert Span(1.0).plus(Span(2.0)) == Span(3.0)


def test_rates_that_a_user_tells() -> None:
    rates = read_user_rates(["encoding=1200", "training=900..1100"], UNITS)
    assert (rates["encoding"].value, rates["encoding"].basis, rates["encoding"].unit) == (1200, Basis.CLUSTER, "texts")
    assert (rates["training"].value, rates["training"].low, rates["training"].high) == (1000, 900, 1100)


@pytest.mark.parametrize("text", ["speed=3", "encoding", "encoding=", "encoding=0", "encoding=-1", "encoding=inf",
                                  "encoding=nan", "encoding=5..3", "encoding=fast", "encoding=1e-320",
                                  "encoding=1e308..1e308"])  # fmt: skip
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        read_user_rates([text], UNITS)


def test_a_training_takes_its_start_its_tokens_and_every_pair() -> None:
    assert training_seconds(6000, 200.0, start=5.0, tokenise=2.0) == 37.0


def test_what_comes_with_the_program_names_its_source_and_is_what_studies_use() -> None:
    assert all(rate.source and rate.basis is Basis.PUBLISHED for rate in PUBLISHED.values())
    speed = DEFAULT_SPEEDS["static-minilm"]
    assert (speed.pairs_per_second, speed.texts_per_second, speed.measured) == (2500.0, 3000.0, False)
