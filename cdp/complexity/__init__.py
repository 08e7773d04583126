"""How complex a query is: its content words (CW), in the language it is written in.

CW is what the principle decides by (``cdp.principle``) and what a weighted loss weighs by (``cdp.training``). This room
knows nothing of corpora, models or jobs: texts in, numbers out. Importing it is cheap; the tokenizers of Chinese,
Japanese and Korean are loaded when they are first used.
"""

from __future__ import annotations

from cdp.complexity.content_words import (
    QUESTION_WORDS_KEPT,
    STANDARD,
    CwProfile,
    content_words,
    count_content_words,
    cw_interval,
    cw_weights,
    lengths,
    profile,
    rarity,
    stopword_list,
    stopword_variants,
)
from cdp.complexity.languages import LANGUAGES, language_of

__all__ = [
    "LANGUAGES", "QUESTION_WORDS_KEPT", "STANDARD", "CwProfile", "content_words", "count_content_words", "cw_interval",
    "cw_weights", "language_of", "lengths", "profile", "rarity", "stopword_list", "stopword_variants",
]  # fmt: skip
