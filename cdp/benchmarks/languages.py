"""The language of a benchmark: as its manifest or its registry entry says, else guessed from its own texts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from cdp.corpus import guess_language

UNKNOWN = "unknown"

TEXTS, CHARACTERS = 300, 500
"""A language is guessed from the beginnings of so many texts."""

DEFAULT = "en"
"""Taken where neither queries nor documents tell."""


def benchmark_language(stated: str, queries: Iterable[str], documents: Iterable[str]) -> str:
    """The code that was ``said``, else the guess from the queries, else from the documents; empty where none tells."""
    if stated:
        return stated
    for texts in (queries, documents):
        guessed = guess_language("\n".join(text[:CHARACTERS] for text in islice(texts, TEXTS)))
        if guessed != UNKNOWN:
            return guessed
    return ""
