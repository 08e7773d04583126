"""Which words of a document match those of the query, so that they can be marked."""

from __future__ import annotations

import re
from functools import lru_cache

from cdp.complexity import content_words, language_of
from cdp.evaluation import bm25

LOOKED_AT = 6000
"""Characters of a document; what is shown of it is far shorter."""

_WORD = re.compile(r"\w+")


def matching_words(query: str, text: str, language: str) -> list[str]:
    """The words of the text, as they stand there in lower case, that match a content word of the query.

    English words match by their stem, as for BM25; those of other languages as they are.
    """
    wanted = content_words(query, language)
    beginning = text[:LOOKED_AT]
    if language != "en":
        there = {word for words in language_of(language).words([beginning]) for word in words}
        return sorted(there & wanted)
    stems = {_stem(word) for word in wanted} - {""}
    return sorted({word for word in _WORD.findall(beginning.lower()) if _stem(word) in stems})


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    """The stem of an English word; empty for a stopword."""
    terms = next(iter(bm25.english_terms([word])))
    return terms[0] if terms else ""
