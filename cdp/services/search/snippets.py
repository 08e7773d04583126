"""The part of a document that says most about the query."""

from __future__ import annotations

from collections.abc import Collection

from cdp.services.results.errors import marked

WIDTH = 260
"""Characters: three or four lines of a column."""

BEFORE = 50
"""Characters in front of the first match, so that it stands in a sentence."""

_LOOKED_AT = 6000


def snippet(text: str, words: Collection[str], width: int = WIDTH) -> list[tuple[str, bool]]:
    """About ``width`` characters of the text, in pieces, each with whether it matches one of the ``words``.

    They begin a little before the first of the most matches that stand so close together, or at the text's beginning
    where nothing matches. Line breaks and runs of spaces become one space; an ellipsis stands where something is
    left out.
    """
    line = " ".join(text[:_LOOKED_AT].split())
    starts, at = [], 0
    for piece, matches in marked(line, words):
        starts += [at] if matches else []
        at += len(piece)
    best = max(starts, key=lambda start: sum(start <= other < start + width - BEFORE for other in starts), default=0)
    furthest = max(0, len(line) - width)  # no further than needed to show the end
    begin = _word_start(line, min(best - BEFORE, furthest)) if min(best - BEFORE, furthest) > 0 else 0
    end = len(line) if len(line) - begin <= width else max(line.rfind(" ", begin + width // 2, begin + width), begin)
    end = end if end > begin else begin + width
    cut_after = end < len(line) or len(text) > _LOOKED_AT
    return marked(f"{'… ' if begin else ''}{line[begin:end].strip()}{' …' if cut_after else ''}", words)


def _word_start(line: str, at: int) -> int:
    """The beginning of the next word, or ``at`` in a script that has no spaces."""
    space = line.find(" ", at, at + BEFORE)
    return at if space < 0 or at == 0 else space + 1
