"""The lines of a document that a query's words are in, with these words marked."""

from __future__ import annotations

import re
from collections.abc import Sequence

SNIPPET = 260  # characters: three or four lines of a column
BEFORE = 50  # characters before the first match
LOOKED_AT = 6000  # characters of a document


# A character of Chinese, Japanese or Korean: no spaces between words.
_JOINED = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def marked(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Split ``text`` into pieces, each with whether it is one of the ``words`` (case-insensitive, whole words).

    Chinese, Japanese and Korean words match anywhere.
    """
    if not words:
        return [(text, False)] if text else []
    apart = [re.escape(word) if _JOINED.search(word) else rf"\b{re.escape(word)}\b" for word in words]
    pattern = re.compile(f"({'|'.join(sorted(apart, key=len, reverse=True))})", re.IGNORECASE)
    return [(piece, i % 2 == 1) for i, piece in enumerate(pattern.split(text)) if piece]


def snippet(text: str, words: Sequence[str], width: int = SNIPPET) -> list[tuple[str, bool]]:
    """Return the ``width`` characters of the text with the most matches, as pieces of ``marked``, with ellipses."""
    line = " ".join(text[:LOOKED_AT].split())
    starts, at = [], 0
    for piece, matches in marked(line, words):
        starts += [at] if matches else []
        at += len(piece)
    best = max(starts, key=lambda start: sum(start <= other < start + width - BEFORE for other in starts), default=0)
    furthest = max(0, len(line) - width)  # no further than needed to show the end
    begin = _word_start(line, min(best - BEFORE, furthest)) if min(best - BEFORE, furthest) > 0 else 0
    end = len(line) if len(line) - begin <= width else max(line.rfind(" ", begin + width // 2, begin + width), begin)
    end = end if end > begin else begin + width
    cut_after = end < len(line) or len(text) > LOOKED_AT
    return marked(f"{'… ' if begin else ''}{line[begin:end].strip()}{' …' if cut_after else ''}", words)


def _word_start(line: str, at: int) -> int:
    """Return the beginning of the next word, or ``at`` in a script without spaces."""
    space = line.find(" ", at, at + BEFORE)
    return at if space < 0 or at == 0 else space + 1
