"""Length distributions and what counts as a word."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdp.corpus.documents import Distribution, count_words
from tests.strategies import examples


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("", 0),
        ("two words", 2),
        (" déjà\u00a0vu \n", 2),
        ("我是学生", 2),
        ("GPUを2つ使う", 4),
        ("ประโยคยาว", 5),
        ("한국어 문장", 2),
        ("𠀀a", 2),
    ],
)
def test_words(text: str, n: int) -> None:
    assert count_words(text) == n


@pytest.mark.slow
@examples(30, 1_000)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=300))
def test_the_distribution_describes_every_document(lengths: list[int]) -> None:
    distribution = Distribution.of(array("I", lengths))
    assert distribution.n == len(lengths)
    assert distribution.median == np.median(lengths)
    assert distribution.min <= distribution.median <= distribution.p95 <= distribution.max
    assert distribution.total == sum(lengths)
