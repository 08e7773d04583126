"""``manifest.json`` of a stored benchmark: its source, subset facts, what its protocol asks for beyond its files.

A folder made by hand has none; then the general rules hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cdp.base.errors import WorkspaceError
from cdp.base.records import checked
from cdp.base.workspace import read_json_or_none, write_json

NAME = "manifest.json"
SCHEMA = 1

# ``source["kind"]`` of a benchmark whose queries and documents are those of another one, ``source["of"]``.
DERIVED = "derived"


@dataclass(frozen=True)
class Subset:
    """What a subset was drawn from and how: scores on it are higher than on the whole, for it has fewer distractors."""

    of: str
    of_hash: str
    split: str
    queries: int
    documents: int
    seed: int
    dev: int = 0
    """Queries of the split ``dev``, where one was drawn beside ``test``."""
    of_documents: int = 0
    """Documents of the whole benchmark; 0 where an older subset does not say."""


@dataclass(frozen=True)
class Manifest:
    """Source and protocol of a stored benchmark.

    ``entry`` is its name in the registry (empty if it has none); ``source`` names repositories with their commits,
    addresses or a folder; ``files`` lists what was read, with bytes and SHA-256; ``counts`` what came of it.
    ``self_match``: True if a query never retrieves the document of its own id, False if equal ids mean nothing, None
    for the rule. ``relevant_from`` is the lowest grade that binary measures count. ``allow_unknown`` keeps judgments of
    documents that the corpus lacks: they count as never retrieved, as in trec_eval.
    """

    entry: str = ""
    title: str = ""
    licence: str = ""
    licence_source: str = ""
    language: str = ""
    source: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Mapping[str, Any], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    self_match: bool | None = None
    relevant_from: int = 1
    allow_unknown: bool = False
    subset: Subset | None = None
    notes: tuple[str, ...] = ()
    created: str = ""

    @property
    def commits(self) -> dict[str, str]:
        """{repository: the commit that was read}; empty for a benchmark that did not come from the hub."""
        commits = self.source.get("commits")
        if not isinstance(commits, dict):
            return {}
        return {str(name): str(commit) for name, commit in commits.items()}

    @property
    def of_passages(self) -> bool:
        """Return True if it was made of a corpus of files that were cut: ids of others may look like a passage's."""
        # Earlier versions kept the corpus's id without its unit.
        return bool(self.source.get("unit", "passage" if self.source.get("corpus") else "") == "passage")

    @property
    def protocol(self) -> tuple[str, ...]:
        """What changes scores beside the files, as words to be hashed; empty where the rules for all hold."""
        words = []
        if self.self_match is not None:
            words.append(f"self_match={self.self_match}")
        if self.relevant_from != 1:
            words.append(f"relevant_from={self.relevant_from}")

        return tuple(words)


def read(folder: Path) -> Manifest:
    """The manifest of a benchmark's folder; an empty one where there is none, or none that can be read."""
    value = read_json_or_none(folder / NAME)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return Manifest()
    try:
        return checked(Manifest, value, folder / NAME)  # anybody may have written it
    except WorkspaceError:
        return Manifest()


def write(folder: Path, manifest: Manifest) -> None:
    """Store a manifest beside the files that it describes."""
    write_json(folder / NAME, {"schema": SCHEMA, **asdict(manifest)})
