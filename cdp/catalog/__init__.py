"""The catalogue: a DuckDB file made from the workspace's files, for tables, comparisons and questions in SQL.

It holds nothing that is not in the files. Every reading function brings it up to date first, and a file that is
missing, damaged or of an older schema is made anew without asking.
"""

from __future__ import annotations

from cdp.catalog.ingest import STUDY, STUDY_START, IngestReport, ingest, rebuild
from cdp.catalog.read import (
    QueryResult,
    evaluations,
    paired,
    per_query,
    query,
    runs,
    trainings,
)

__all__ = [
    "STUDY",
    "STUDY_START",
    "IngestReport",
    "QueryResult",
    "evaluations",
    "ingest",
    "paired",
    "per_query",
    "query",
    "rebuild",
    "runs",
    "trainings",
]
