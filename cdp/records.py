"""The records that flow between the rooms. Plain frozen data, no behaviour beyond what defines them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a corpus. ``title`` may be empty."""

    id: str
    text: str
    title: str = ""

    @property
    def content(self) -> str:
        """What is encoded and shown to a generator: title, one space, text (the BEIR convention)."""
        return f"{self.title} {self.text}".strip() if self.title else self.text

    @property
    def content_hash(self) -> str:
        """16 hex digits of the SHA-256 of ``content``: equal for equal documents, whatever their ids."""
        return hashlib.sha256(self.content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Query:
    """One query. ``document_id`` names the document it was written for (empty for a benchmark's query)."""

    id: str
    text: str
    document_id: str = ""


@dataclass(frozen=True, slots=True)
class Qrel:
    """One relevance judgment: graded, ``score`` 0 is judged not relevant."""

    query_id: str
    document_id: str
    score: int
