"""CW: a pair counts in proportion to the content words of its query (Eq. 2); its stopword list, one of your own; with
question words counted, for languages whose list takes *pourquoi* or 为什么 away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cdp.complexity import QUESTION_WORDS_KEPT, STANDARD, count_content_words, stopword_variants
from cdp.training.weightings import Weighting


def capped_content_words(
    queries: Sequence[str], language: str, kappa: float, stopwords: str = STANDARD
) -> NDArray[np.float64]:
    """min(CW, κ) of each query: the numerator of Eq. 2."""
    return np.minimum(count_content_words(queries, language, stopwords=stopwords).astype(np.float64), kappa)


def with_question_words(queries: Sequence[str], language: str, kappa: float) -> NDArray[np.float64]:
    """min(CW, κ) of each query, question words counted: the paper suspects these behind what CW weighting does to
    French. In a language whose list has no question words set apart it is CW."""
    stopwords = QUESTION_WORDS_KEPT if QUESTION_WORDS_KEPT in stopword_variants(language) else STANDARD
    return capped_content_words(queries, language, kappa, stopwords)


CW = Weighting(
    "cw",
    "Content words (CW)",
    "A pair counts in proportion to its query's content words, capped at κ (Eq. 2).",
    capped_content_words,
    settings=("kappa", "stopwords"),
    paper="CW",
    order=20,
)

QUESTION_WORDS = Weighting(
    "cw-question-words",
    "Content words with question words (CW)",
    "As CW, with question words counted (en, ru, ar, fr, zh, ja, ko).",
    with_question_words,
    settings=("kappa",),
    order=25,
)
