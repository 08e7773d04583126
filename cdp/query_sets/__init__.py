"""Query sets: what a synthesis job or an import makes, and what metrics and training read."""

from __future__ import annotations

from cdp.query_sets.deriving import Derived, derive, leave_out
from cdp.query_sets.imports import ImportedQueries, ImportOptions, import_queries
from cdp.query_sets.store import (
    DocumentQueries,
    QuerySet,
    content_hash,
    count,
    create,
    delete,
    document_of,
    exists,
    files,
    iter_failures,
    iter_lines,
    iter_offsets,
    list_query_sets,
    load,
    plain_form,
    query_id,
    read_at,
    read_queries,
    read_rankings,
    resolve_query_set,
    shared_queries,
    state,
    update,
)

__all__ = [
    "Derived", "DocumentQueries", "ImportOptions", "ImportedQueries", "QuerySet", "content_hash", "count", "create",
    "delete", "derive", "document_of", "exists", "files", "import_queries", "iter_failures", "iter_lines",
    "iter_offsets", "leave_out", "list_query_sets", "load", "plain_form", "query_id", "read_at", "read_queries",
    "read_rankings", "resolve_query_set", "shared_queries", "state", "update",
]  # fmt: skip
