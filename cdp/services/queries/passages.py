"""Which passage of a document a query came from: as it was recorded, word for word, or as far as words tell."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from cdp.complexity import content_words

_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.!?]+(?=\s|$)|[。！？]+|[.!?]|\n+|$)")
MOST_SENTENCES = 2000
LETTERS = 5


@dataclass(frozen=True)
class Passage:
    """Where a passage begins and ends in the text, and how it is known: ``recorded``, ``verbatim`` or ``overlap``."""

    start: int
    end: int
    how: str


def passage_of(query: str, text: str, language: str = "en", recorded: str = "") -> Passage | None:
    """The passage of ``text`` that ``query`` came from; None where nothing points to one.

    ``recorded`` is the passage that the generator kept. Else the query itself where the text holds it, else the
    sentence that shares most content words with it, the first one among equals.
    """
    for known, how in ((recorded.strip(), "recorded"), (query.strip().rstrip("?.!"), "verbatim")):
        at = text.casefold().find(known.casefold()) if known else -1
        if at >= 0 and len(text.casefold()) == len(text):
            return Passage(at, at + len(known), how)
    wanted = content_words(query, language)
    best, span = 0, None
    for start, end in sentences(text)[:MOST_SENTENCES]:
        words = content_words(text[start:end], language)
        score = 2 * len(wanted & words) + len(_beginnings(wanted) & _beginnings(words))
        if score > best:
            best, span = score, (start, end)
    return None if span is None else Passage(*span, "overlap")


def _beginnings(words: Collection[str]) -> set[str]:
    """Of longer words the first letters: a lighthouse is the same thing as lighthouses."""
    return {word[:LETTERS] for word in words if len(word) > LETTERS}


def sentences(text: str) -> list[tuple[int, int]]:
    """(start, end) of each sentence, without the space around it. An abbreviation's point may cut one in two."""
    spans, start = [], 0
    for match in _SENTENCE.finditer(text):
        end = match.end()
        inner = text[start:end]
        if inner.strip() and (match.group().rstrip("\n") != match.group() or not text[end : end + 1].isalnum()):
            left = start + len(inner) - len(inner.lstrip())
            spans.append((left, start + len(inner.rstrip())))
            start = end
    return spans
