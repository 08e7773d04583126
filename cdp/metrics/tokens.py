"""The words of a query as the metrics count them, the same for every script."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from cdp.base.errors import ConfigError
from cdp.complexity.languages import combining_marks

# What ``tokens`` does; recorded beside each value that depends on it.
TOKENIZER = (
    "lower-cased words and punctuation marks; single characters in scripts written without spaces (Chinese, Japanese, "
    "Thai, Lao, Khmer, Burmese)"
)

_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]").search
_ASCII = re.compile(r"\w+|[^\w\s]").findall
_ALPHANUMERIC = re.compile(r"[^\W_]").search


@lru_cache(maxsize=1)
def _spaced() -> re.Pattern[str]:
    marks = combining_marks()
    return re.compile(rf"[\w{marks}]+|[^\w\s{marks}]")


@lru_cache(maxsize=1)
def _any_script() -> re.Pattern[str]:
    marks = combining_marks()
    return re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\w{marks}])+|[^\w\s{marks}]")


# How a query can be cut for Self-BLEU. The paper does not say how it did; of few queries the order may turn.
MARKS, HYPHENS, WORDS = "marks", "hyphens", "words"
TOKENISATIONS = {
    MARKS: "words and punctuation marks; a hyphenated word is three tokens (the default)",
    HYPHENS: "words and punctuation marks; a word with hyphens or apostrophes is one token",
    WORDS: "words alone; a word with hyphens or apostrophes is one token",
}

# A hyphen or apostrophe within a word.
_WITHIN = re.compile(r"(?<=\w)([-\u2010\u2011'\u2019])(?=\w)")


def tokens(text: str, tokenisation: str = MARKS) -> list[str]:
    """The tokens of a query: what Self-BLEU compares. ConfigError for a tokenisation that there is not."""
    if tokenisation not in TOKENISATIONS:
        raise ConfigError(
            f"There is no tokenisation called {tokenisation!r}.", hint=f"Choose one of: {', '.join(TOKENISATIONS)}."
        )
    if tokenisation == MARKS:
        return _marked(text)
    parts = _WITHIN.split(text)
    joined = _marked(parts[0])
    for mark, part in zip(parts[1::2], parts[2::2], strict=True):
        first, *rest = _marked(part)
        # What stands before and after the mark becomes one token with it; all hyphens count as the same one.
        joined[-1] += ("'" if mark in "'\u2019" else "-") + first
        joined += rest
    return joined if tokenisation == HYPHENS else [token for token in joined if _ALPHANUMERIC(token)]


def _marked(text: str) -> list[str]:
    if text.isascii():
        return _ASCII(text.lower())
    text = unicodedata.normalize("NFC", text).lower()
    return (_any_script() if _HAS_UNSPACED(text) else _spaced()).findall(text)


def word_count(text: str) -> int:
    """How many words a query has: its tokens that are not punctuation. What Len-Sim compares."""
    return sum(1 for token in tokens(text) if _ALPHANUMERIC(token))
