"""What is known of a stored corpus: ``manifest.json`` beside its documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cdp.corpus.lengths import Distribution
from cdp.corpus.rejections import Rejected


@dataclass(frozen=True)
class CorpusManifest:
    """``content_hash`` is the hex SHA-256 over id, title and text of all documents in order.

    ``languages`` are shares of a sample; ``rejected`` holds the first thousand rows that were not taken,
    ``rejected_counts`` all of them by kind; ``n_queries`` came with the documents and are stored by ``synthesis``.
    """

    id: str
    name: str
    created: str
    content_hash: str
    n_documents: int
    characters: Distribution
    words: Distribution
    languages: dict[str, float]
    source: str
    source_sha256: str
    formats: tuple[str, ...]
    options: dict[str, Any]
    found_fields: tuple[str, ...]
    notes: tuple[str, ...]
    n_queries: int
    rejected_counts: dict[str, int]
    rejected: tuple[Rejected, ...]
    licence: str = ""

    @property
    def n_rejected(self) -> int:
        return sum(self.rejected_counts.values())

    @property
    def main_language(self) -> str:
        """The most frequent language of the sample, ``unknown`` left aside; ``unknown`` if there is no other."""
        return next((language for language in self.languages if language != "unknown"), "unknown")

    @property
    def counted_language(self) -> str:
        """The language in which content words are counted: the most frequent one, English where unknown."""
        return "en" if self.main_language == "unknown" else self.main_language

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> CorpusManifest:
        """The manifest in a JSON object; fields that a later version added are passed over."""
        field_names = {f.name for f in dataclasses.fields(cls)}
        fields = {name: content for name, content in value.items() if name in field_names}
        for name in ("characters", "words"):
            fields[name] = Distribution.from_dict(fields[name])
        for name in ("formats", "found_fields", "notes"):
            fields[name] = tuple(fields[name])
        fields["rejected"] = tuple(Rejected(**rejected) for rejected in fields["rejected"])
        return cls(**fields)
