"""What it changes whether question words count: the paper suspects them behind its result on French and Chinese."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdp.base.errors import InputError
from cdp.base.statistics import bootstrap_interval
from cdp.complexity.content_words import count_content_words
from cdp.complexity.profile import CwProfile, profile
from cdp.complexity.stopwords import QUESTION_WORDS_KEPT


@dataclass(frozen=True, slots=True)
class QuestionWordEffect:
    """CW of the same queries by the standard list and by the list without its question words.

    ``difference`` is the rise of the mean CW, with the 95% bootstrap interval over queries; ``changed`` the share of
    queries whose CW rises.
    """

    language: str
    standard: CwProfile
    kept: CwProfile
    difference: float
    interval: tuple[float, float]
    changed: float


def question_word_effect(texts: Sequence[str], language: str, *, seed: int = 0) -> QuestionWordEffect:
    """Count queries both ways. ConfigError for a language whose question words are not set apart; InputError for none.

    On MIRACL's development questions the mean CW rises from 3.01 to 3.95 in French (343 questions, 94% of them) and
    from 2.90 to 3.56 in Chinese (393, 66%); in both languages 99% of them stay below the published line of 7.
    """
    if not texts:
        raise InputError("There are no queries to compare.")
    standard = count_content_words(texts, language)
    kept = count_content_words(texts, language, stopwords=QUESTION_WORDS_KEPT)
    rise = (kept - standard).astype(float)
    return QuestionWordEffect(
        language=language,
        standard=profile(standard, seed=seed),
        kept=profile(kept, seed=seed),
        difference=float(rise.mean()),
        interval=bootstrap_interval(rise, seed=seed),
        changed=float((rise > 0).mean()),
    )
