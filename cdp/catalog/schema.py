"""The catalogue's tables. A catalogue with any other schema is rebuilt from the files.

Every row names the file it was read from (``source``, relative to the workspace), so that a changed or deleted file
takes its rows with it. There are no keys and indices: DuckDB scans columns faster than it maintains an index on them.
"""

from __future__ import annotations

import hashlib
from typing import Any

STATEMENTS = (
    "CREATE TABLE files (path VARCHAR, stamp VARCHAR, hash VARCHAR, problem VARCHAR)",
    "CREATE TABLE notes (time VARCHAR, note VARCHAR)",
    """CREATE TABLE corpora (source VARCHAR, id VARCHAR, name VARCHAR, created VARCHAR, hash VARCHAR,
           n_documents BIGINT, manifest VARCHAR)""",
    """CREATE TABLE query_sets (source VARCHAR, id VARCHAR, name VARCHAR, created VARCHAR, corpus VARCHAR,
           method VARCHAR, generator VARCHAR, per_doc BIGINT, n_documents BIGINT, n_queries BIGINT,
           manifest VARCHAR)""",
    """CREATE TABLE jobs (source VARCHAR, id VARCHAR, kind VARCHAR, name VARCHAR, created VARCHAR,
           module VARCHAR, launcher VARCHAR, config VARCHAR, inputs VARCHAR)""",
    """CREATE TABLE trainings (source VARCHAR, id VARCHAR, job_id VARCHAR, name VARCHAR, retriever VARCHAR,
           query_set VARCHAR, weighting VARCHAR, pairs BIGINT, steps BIGINT, seconds DOUBLE,
           loss_first DOUBLE, loss_last DOUBLE, model_hash VARCHAR, created VARCHAR, result VARCHAR)""",
    """CREATE TABLE evaluations (source VARCHAR, id VARCHAR, job_id VARCHAR, retriever_id VARCHAR,
           retriever_name VARCHAR, retriever_kind VARCHAR, retriever_hash VARCHAR, benchmark VARCHAR,
           folder VARCHAR, split VARCHAR, benchmark_hash VARCHAR, protocol VARCHAR, "ndcg@10" DOUBLE,
           measures MAP(VARCHAR, DOUBLE), n_queries BIGINT, n_documents BIGINT, seconds DOUBLE,
           created VARCHAR, settings VARCHAR, counts VARCHAR, hash VARCHAR)""",
    "CREATE TABLE scores (evaluation_id VARCHAR, query_id VARCHAR, measure VARCHAR, value DOUBLE)",
    """CREATE TABLE metrics (source VARCHAR, job_id VARCHAR, query_set VARCHAR, measure VARCHAR, value DOUBLE,
           low DOUBLE, high DOUBLE, n_documents BIGINT, details VARCHAR, created VARCHAR)""",
    # One row per retriever that was trained here or evaluated. Models of studies are not kept: they are no retrievers.
    """CREATE VIEW retrievers AS
       WITH known AS (
           SELECT id, name, 'job' AS kind, model_hash AS hash, created FROM trainings
           UNION ALL
           SELECT retriever_id, retriever_name, retriever_kind, retriever_hash, created FROM evaluations
           WHERE NOT starts_with(retriever_kind, 'study'))
       SELECT id, arg_max(name, created) AS name, arg_max(kind, created) AS kind,
              arg_max(hash, created) AS hash, min(created) AS first_seen,
              (SELECT count(*) FROM evaluations e
               WHERE e.retriever_id = known.id AND NOT starts_with(retriever_kind, 'study')) AS n_evaluations
       FROM known GROUP BY id""",
)
VERSION = hashlib.sha256("\n".join(STATEMENTS).encode()).hexdigest()[:16]


def create(connection: Any) -> None:
    """Create all tables in an empty file, in one transaction."""
    connection.execute("BEGIN")
    for statement in (*STATEMENTS, "CREATE TABLE version (hash VARCHAR)"):
        connection.execute(statement)
    connection.execute("INSERT INTO version VALUES (?)", [VERSION])
    connection.execute("COMMIT")


def is_current(connection: Any) -> bool:
    """Return True if the catalogue has the tables that this version of CDP Studio creates."""
    import duckdb

    try:
        return connection.execute("SELECT hash FROM version").fetchall() == [(VERSION,)]
    except (duckdb.CatalogException, duckdb.BinderException):
        return False
