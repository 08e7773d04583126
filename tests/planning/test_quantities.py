"""Numbers as people write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdp.base.errors import ConfigError
from cdp.planning.quantities import LARGEST, long_time, read_count, short_count
from tests.strategies import examples


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("8000", 8000),
        ("8k", 8000),
        ("80 thousand", 80_000),
        ("8.8M", 8_800_000),
        ("8,841,823", 8_841_823),
        ("1B", 10**9),
        ("1 billion", 10**9),
        ("0.5k", 500),
        (" 2g ", 2 * 10**9),
    ],
)
def test_a_count_is_read_as_people_write_it(text: str, n: int) -> None:
    assert read_count(text) == n


@pytest.mark.parametrize("text", ["", "8.8X", "-5", "0", "many", "1e9", "2000T", "M", "9" * 400])
def test_what_is_no_count_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_count(text)
    assert "is no number" not in str(refused.value)  # -5 and 1e9 are numbers


@examples(50)
@given(st.integers(1, LARGEST))
def test_every_number_reads_back_as_itself(n: int) -> None:
    assert read_count(str(n)) == read_count(f"{n:,}") == n


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.0, "0 s"), (8.0, "8 s"), (90.0, "1.5 min"), (5400.0, "1.5 h"), (40 * 3600.0, "40 h"),
     (86400 * 12.0, "12 days"), (86400 * 365.25 * 3100, "3,100 years")],
)  # fmt: skip
def test_a_time_of_any_length_is_short_to_read(seconds: float | None, text: str) -> None:
    assert long_time(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(8000, "8,000"), (0.305, "0.305"), (8.8e6, "8.8 million"), (10**9, "1 billion"), (5e15, "5 quadrillion")],
)
def test_a_count_is_shown_in_words(value: float, text: str) -> None:
    assert short_count(value) == text
