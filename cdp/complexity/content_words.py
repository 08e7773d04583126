"""CW(q) = |{w in words(q): w no stopword, |w| > 1}|, a query's distinct content words (eq:cw_method of the paper).

English follows the paper to within 1.3% on each of 15 query sets (``tests/complexity/test_paper_english.py``); the
tokenizers and lists of the six other languages give the CW ranges that the paper prints for MIRACL's training queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

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
