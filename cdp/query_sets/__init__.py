"""Query sets: what a synthesis job or an import makes, and what metrics and training read."""

from __future__ import annotations

from cdp.query_sets.imports import ImportedQueries, import_queries
from cdp.query_sets.leaving_out import leave_out
from cdp.query_sets.options import ImportOptions
from cdp.query_sets.store import (
    DocumentQueries,
    QuerySet,
    TeacherRanking,
    content_hash,
    count,
    create,
    delete,
    document_of,
    exists,
    files,
    iter_failures,
    iter_lines,
    iter_queries,
    list_query_sets,
    load,
    query_id,
    read_queries,
    read_rankings,
    resolve_query_set,
    state,
    update,
)

__all__ = [
    "DocumentQueries",
    "ImportOptions",
    "ImportedQueries",
    "QuerySet",
    "TeacherRanking",
    "content_hash",
    "count",
    "create",
    "delete",
    "document_of",
    "exists",
    "files",
    "import_queries",
    "iter_failures",
    "iter_lines",
    "iter_queries",
    "leave_out",
    "list_query_sets",
    "load",
    "query_id",
    "read_queries",
    "read_rankings",
    "resolve_query_set",
    "state",
    "update",
]
