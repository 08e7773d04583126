"""The words of a query as Self-BLEU and Len-Sim count them, the same for every script."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from cdp.complexity.languages import UNSPACED, combining_marks

_HAS_UNSPACED = re.compile(f"[{UNSPACED}]").search
_ASCII = re.compile(r"\w+|[^\w\s]").findall
_ALPHANUMERIC = re.compile(r"[^\W_]").search


@lru_cache(maxsize=1)
def _spaced() -> re.Pattern[str]:
    marks = combining_marks()
    return re.compile(rf"[\w{marks}]+|[^\w\s{marks}]")


@lru_cache(maxsize=1)
def _any_script() -> re.Pattern[str]:
    marks = combining_marks()
    return re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])[\w{marks}])+|[^\w\s{marks}]")


def tokens(text: str) -> list[str]:
    """The tokens of a query: what Self-BLEU compares. Lower-cased words and punctuation marks; single characters in
    scripts written without spaces. The paper does not say how it cut; a hyphenated word is three."""
    if text.isascii():
        return _ASCII(text.lower())
    text = unicodedata.normalize("NFC", text).lower()
    return (_any_script() if _HAS_UNSPACED(text) else _spaced()).findall(text)


def word_count(text: str) -> int:
    """How many words a query has: its tokens that are not punctuation. What Len-Sim compares."""
    return sum(1 for token in tokens(text) if _ALPHANUMERIC(token))
