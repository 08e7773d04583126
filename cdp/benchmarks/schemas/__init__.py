"""How each family of benchmarks is published: which files it has, and what is in them. One module per schema."""

from __future__ import annotations

from cdp.benchmarks.registry import Entry
from cdp.benchmarks.schemas import beir, bright, contexts, miracl, paragraphs, trec_dl
from cdp.benchmarks.schemas.contents import Contents, Files, Part, Schema, SourceQuery

SCHEMAS: dict[str, Schema] = {
    "beir": beir,
    "bright": bright,
    "contexts": contexts,
    "miracl": miracl,
    "paragraphs": paragraphs,
    "trec-dl": trec_dl,
}


def schema_of(entry: Entry) -> Schema:
    """The schema of a downloadable entry."""
    return SCHEMAS[entry.schema]


__all__ = ["SCHEMAS", "Contents", "Files", "Part", "Schema", "SourceQuery", "schema_of"]
