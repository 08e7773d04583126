"""Estimating tokens by script without a tokenizer, and cutting a document at the end of a sentence.

An endpoint's tokenizer is unknown, so lengths are estimated from the script: four characters of an alphabet per token,
one of Chinese, Japanese and Korean, 1.5 of other scripts. For English prose that is within about 15%, mostly above.
"""

from __future__ import annotations

import re

_WIDE_SCRIPTS = r"\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
_WIDE = re.compile(rf"[{_WIDE_SCRIPTS}]")
_OTHER = re.compile(rf"[^\x00-\u024f{_WIDE_SCRIPTS}]")
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*(?=\s)|[。！？；]+[」』”）]*|[؟۔।]+|\n+")


def estimate_tokens(text: str) -> int:
    """Return the estimated number of tokens; at least one for a text that is not empty."""
    if not text:
        return 0
    wide, other = len(_WIDE.findall(text)), len(_OTHER.findall(text))
    return max(1, round(wide + other / 1.5 + (len(text) - wide - other) / 4))


def cut(text: str, max_tokens: int) -> str:
    """Truncate ``text`` to ``max_tokens`` at the last sentence end in the second half of what fits, else at a space."""
    if len(text) <= max_tokens // 2 or estimate_tokens(text) <= max_tokens:
        return text
    low, high = 0, min(len(text), 4 * max_tokens + 4)  # a token is four characters at most
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    fitting = text[:low]
    ends = [match.end() for match in _SENTENCE_END.finditer(text[: low + 1]) if low // 2 <= match.end() <= low]
    at = ends[-1] if ends else fitting.rfind(" ")
    return fitting[: at if at > low // 2 else low].rstrip()
