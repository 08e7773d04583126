"""The words of a file that its reader left behind: what is a word, and which of those counted did not come out."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

from cdp.base.text import counted
from cdp.corpus.documents import UNSPACED_LETTERS

# A file of whose words fewer came out is named to the person.
ENOUGH = 0.98

# A character of a script without spaces is a word; else a run of letters and digits.
_WORD = re.compile(rf"[{UNSPACED_LETTERS}]|[^\W_{UNSPACED_LETTERS}]+")
# Soft hyphens, joiners and marks of direction stand inside words.
_INVISIBLE = dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF))


def words(text: str) -> list[str]:
    """Return the words of a text as they are compared: without case, marks of layout and forms of the same letter."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_INVISIBLE))
    return _WORD.findall(text.casefold())


def missing(inside: Mapping[str, Counter[str]], came: Counter[str]) -> dict[str, int]:
    """Return how many words of each kind did not come, the most first.

    A word is compared with itself, so that text that came twice makes up for nothing.
    """
    lost = sum(inside.values(), Counter[str]()) - came
    if not lost:
        return {}

    # A word stands in several kinds: the one that lost the greatest share of its words is where it was lost.
    def share(kind: str) -> float:
        return (inside[kind] & lost).total() / max(1, inside[kind].total())

    found = {}
    for kind in sorted(inside, key=share, reverse=True):
        own = inside[kind] & lost
        lost -= own
        found[kind] = own.total()
    return {kind: n for kind, n in sorted(found.items(), key=lambda pair: -pair[1]) if n}


def described(n_words: int, lost: Mapping[str, int]) -> str:
    """Return what of a file's words is missing, in words; empty where at least 98% came out."""
    n = sum(lost.values())
    if n <= (1 - ENOUGH) * n_words:
        return ""

    kinds = ", ".join(f"{kind} ({n:,})" for kind, n in lost.items())
    return f"{n:,} of {counted(n_words, 'word')} ({n / n_words:.0%}) did not come out: {kinds}"
