"""Query sets: what a synthesis job or an import makes, and what metrics and training read."""

from __future__ import annotations

from cdp.query_sets.imports import ImportedQueries, import_queries
from cdp.query_sets.options import ImportOptions
from cdp.query_sets.store import (
    FAILURES,
    MANIFEST,
    QUERIES,
    QuerySet,
    count,
    create,
    delete,
    iter_failures,
    iter_lines,
    iter_queries,
    list_query_sets,
    load,
    resolve_query_set,
    update,
)

__all__ = [
    "FAILURES",
    "MANIFEST",
    "QUERIES",
    "ImportOptions",
    "ImportedQueries",
    "QuerySet",
    "count",
    "create",
    "delete",
    "import_queries",
    "iter_failures",
    "iter_lines",
    "iter_queries",
    "list_query_sets",
    "load",
    "resolve_query_set",
    "update",
]
