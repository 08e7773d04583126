"""Weights by what stands beside CW: the length of a query, or the rarity of its words. Controls: is it CW or length?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cdp.complexity import lengths, rarity
from cdp.training.weightings import Weighting


def capped_lengths(queries: Sequence[str], language: str, kappa: float) -> NDArray[np.float64]:
    """min(words, κ) of each query."""
    return np.minimum(lengths(queries, language), kappa)


def capped_rarity(queries: Sequence[str], language: str, kappa: float) -> NDArray[np.float64]:
    """min(rarity, κ) of each query, among the queries that are trained on."""
    return np.minimum(rarity(queries, language), kappa)


WORDS = Weighting(
    "words", "Words", "A pair counts in proportion to its query's words, stopwords among them, capped at κ.",
    capped_lengths, settings=("kappa",), order=26,
)  # fmt: skip
RARITY = Weighting(
    "rarity", "Rarity", "A pair counts in proportion to how rare its query's content words are among all, capped at κ.",
    capped_rarity, settings=("kappa",), order=27,
)  # fmt: skip
