"""CW(q) = |{w in words(q): w no stopword, |w| > 1}|, a query's distinct content words (eq:cw_method of the paper).

English follows the paper to within 1.3% on each of 15 query sets (``tests/complexity/test_paper_english.py``); the
tokenizers and lists of the six other languages give the CW ranges that the paper prints for MIRACL's training queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError
from cdp.complexity.languages import language_of
from cdp.complexity.stopwords import STANDARD, own_words, stopword_list


def content_words(text: str, language: str = "en", *, stopwords: str | Collection[str] = STANDARD) -> set[str]:
    """The content words of one text, lower-cased.

    ``language`` is an ISO 639-1 code; ``stopwords`` is the name of a list (``standard``, ``question-words-kept``) or
    the caller's own words. ConfigError for a language or list that does not exist.
    """
    return next(_content_words([text], language, stopwords))


def count_content_words(
    texts: Iterable[str], language: str = "en", *, stopwords: str | Collection[str] = STANDARD
) -> NDArray[np.int64]:
    """CW of each text: int64, shape (n_texts,). Arguments and errors as in ``content_words``."""
    if isinstance(texts, str):
        raise InputError("One text was given where many are counted.", hint="Put it into a list.")
    return np.fromiter(map(len, _content_words(texts, language, stopwords)), dtype=np.int64)


def _content_words(texts: Iterable[str], language: str, stopwords: str | Collection[str]) -> Iterator[set[str]]:
    entry = language_of(language)
    stop = stopword_list(entry.code, stopwords) if isinstance(stopwords, str) else own_words(stopwords)
    for words in entry.words(texts):
        distinct = set(words).difference(stop)
        yield {word for word in distinct if len(word) > 1}


def cw_weights(cw: ArrayLike, kappa: float = 100.0) -> NDArray[np.float64]:
    """w = min(CW, κ) / Σ min(CW, κ) · n over one batch: float64, shape (n,), mean 1.

    A batch without any content word gets equal weights. InputError for negative or non-finite CW, κ not
    above 0, or a sum too large for a number.
    """
    values = np.asarray(cw, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"CW must be one number per query, not an array of shape {values.shape}.")
    if not kappa > 0:
        raise InputError(f"κ must be above 0, not {kappa}.")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InputError("CW must be finite and not negative.")
    capped = np.minimum(values, kappa)
    with np.errstate(over="ignore"):
        total = capped.sum()
    if not np.isfinite(total):
        raise InputError("CW add up to more than a number can hold.", hint="Choose a smaller κ.")
    return capped / total * len(capped) if total > 0 else np.ones_like(capped)
