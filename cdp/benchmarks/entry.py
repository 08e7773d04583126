"""A benchmark that is known by name."""

from __future__ import annotations

from dataclasses import dataclass

BYTES_PER_CHARACTER = {"ar": 2, "ru": 2, "ja": 3, "ko": 3, "zh": 3}
"""In UTF-8, nearly; 1 for every other language here."""


@dataclass(frozen=True)
class Entry:
    """A benchmark that can be downloaded, or one that is the mean of its ``parts`` (then ``schema`` is empty).

    ``documents``, ``queries`` and ``cw`` (mean content words of a query) are None, and ``language`` empty, where they
    are not stated; ``figures`` is the source of the sizes, ``paper`` the paper's name for it (empty if it is not
    there). ``self_match`` is None where the rule for all benchmarks holds: equal ids are left out unless one of them is
    an answer. ``relevant_from`` is the lowest grade that the binary measures count as relevant.
    """

    name: str
    title: str
    groups: tuple[str, ...] = ()
    part_of: str = ""
    schema: str = ""
    repos: tuple[str, ...] = ()
    task: str = ""
    split: str = "test"
    language: str = ""
    licence: str = "not stated"
    licence_source: str = ""
    documents: int | None = None
    queries: int | None = None
    doc_chars: int | None = None
    cw: float | None = None
    figures: str = ""
    paper: str = ""
    self_match: bool | None = None
    titles: bool = True
    relevant_from: int = 1
    note: str = ""

    @property
    def text_bytes(self) -> int | None:
        """About how many bytes its documents' texts take; None where their length is not stated."""
        if self.documents is None or self.doc_chars is None:
            return None
        return self.documents * self.doc_chars * BYTES_PER_CHARACTER.get(self.language, 1)
