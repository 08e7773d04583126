"""Length and rarity: complexity without a model, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.complexity import lengths, rarity
from cdp.training.weightings import WEIGHTINGS

QUERIES = ["the tide", "the tide of the harbour", "tide harbour basalt", "the of"]


def test_length_counts_every_word() -> None:
    assert lengths(QUERIES).tolist() == [2, 5, 3, 2]


def test_rarity_is_the_mean_of_the_bits_of_content_words() -> None:
    """Of four queries three have tide, two harbour, one basalt."""
    tide, harbour, basalt = np.log2(4 / 3), 1.0, 2.0
    expected = [tide, (tide + harbour) / 2, (tide + harbour + basalt) / 3, 0.0]
    assert rarity(QUERIES).tolist() == pytest.approx(expected)


def test_both_are_weightings_with_a_cap() -> None:
    assert WEIGHTINGS["words"].raw(QUERIES, "en", 3.0).tolist() == [2, 3, 3, 2]
    assert WEIGHTINGS["rarity"].raw(QUERIES, "en", 1.0).max() == 1.0
