"""CW with question words counted: as CW, for languages whose stopword list takes *pourquoi* or 为什么 away.

The paper suspects these words behind what CW weighting does to French. In a language whose list has no question words
set apart it is CW.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cdp.complexity import QUESTION_WORDS_KEPT, STANDARD, stopword_variants
from cdp.training.weightings import Weighting
from cdp.training.weightings.content_words import capped_content_words


def with_question_words(queries: Sequence[str], language: str, kappa: float) -> NDArray[np.float64]:
    """min(CW, κ) of each query, question words counted."""
    stopwords = QUESTION_WORDS_KEPT if QUESTION_WORDS_KEPT in stopword_variants(language) else STANDARD
    return capped_content_words(queries, language, kappa, stopwords)


WEIGHTING = Weighting(
    "cw-question-words",
    "Content words with question words (CW)",
    "As CW, with question words counted (en, ru, ar, fr, zh, ja, ko).",
    with_question_words,
    settings=("kappa",),
    order=25,
)
