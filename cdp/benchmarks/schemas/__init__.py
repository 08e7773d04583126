"""How each family of benchmarks is published: which files it has, and what is in them.

One module per schema. Adding one is adding a file that declares a ``Schema``, with the benchmarks that it brings along.
"""

from __future__ import annotations

from cdp.base.registry import Registry
from cdp.benchmarks.entry import Entry
from cdp.benchmarks.schemas.contents import Contents, Files, Part, Schema, SourceQuery

SCHEMAS: Registry[Schema] = Registry("benchmark schema", Schema, __name__)


def schema_of(entry: Entry) -> Schema:
    """The schema of a downloadable entry."""
    return SCHEMAS.named(entry.schema)


__all__ = ["SCHEMAS", "Contents", "Files", "Part", "Schema", "SourceQuery", "schema_of"]
