"""NLTK, the oracle of Self-BLEU, loaded by the first that asks it."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def _nltk() -> Any:
    import nltk.tokenize
    import nltk.translate.bleu_score

    return nltk


@functools.cache
def _smoothing() -> Any:
    return _nltk().translate.bleu_score.SmoothingFunction().method1


def sentence_bleu(others: list[list[str]], query: list[str]) -> float:
    """BLEU of a query against the others, smoothed by NLTK's method 1."""
    return float(_nltk().translate.bleu_score.sentence_bleu(others, query, smoothing_function=_smoothing()))


def wordpunct_tokenize(text: str) -> list[str]:
    return list(_nltk().tokenize.wordpunct_tokenize(text))
