"""CW: a pair counts in proportion to the content words of its query (Eq. 2); its stopword list, one of your own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cdp.complexity import STANDARD, count_content_words
from cdp.training.weightings import Weighting


def capped_content_words(
    queries: Sequence[str], language: str, kappa: float, stopwords: str = STANDARD
) -> NDArray[np.float64]:
    """min(CW, κ) of each query: the numerator of Eq. 2."""
    return np.minimum(count_content_words(queries, language, stopwords=stopwords).astype(np.float64), kappa)


WEIGHTING = Weighting(
    "cw",
    "Content words (CW)",
    "A pair counts in proportion to its query's content words, capped at κ (Eq. 2).",
    capped_content_words,
    settings=("kappa", "stopwords"),
    paper="CW",
    order=20,
)
