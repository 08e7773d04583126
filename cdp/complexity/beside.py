"""Complexity without a model beside CW: the length of a query, and the rarity of its words among the other queries.

Whether a gain goes with content words or with length alone is asked by weighting, or laying the axis, by these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain, groupby

import numpy as np
from numpy.typing import NDArray

from cdp.complexity.content_words import content_words_of
from cdp.complexity.languages import language_of, language_written


def lengths(texts: Sequence[str], language: str = "en") -> NDArray[np.float64]:
    """The number of words of each text in its language, stopwords and repetitions among them: shape (n_texts,)."""
    counts: list[int] = []
    for written_in, group in groupby(texts, partial(language_written, language)):
        counts += map(len, language_of(written_in).words(group))
    return np.array(counts, dtype=np.float64)


def rarity(texts: Sequence[str], language: str = "en") -> NDArray[np.float64]:
    """The mean of log2(n / n_w) over the content words w of each text, in bits: shape (n_texts,).

    n_w of the n texts have w (inverse document frequency, Spärck Jones 1972). 0 for a text without content words. It
    is a mean, so that longer queries have no more of it.
    """
    words = content_words_of(texts, language)
    having = Counter(chain.from_iterable(words))
    bits = {word: np.log2(len(words) / n) for word, n in having.items()}

    means = np.zeros(len(words))
    for i, of_text in enumerate(words):
        if of_text:
            means[i] = np.mean([bits[word] for word in of_text])

    return means
