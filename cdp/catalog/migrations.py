"""The catalogue's schema, as ordered steps. A step that has been released is never changed: add another.

Every row names the file it was read from (``source``, relative to the workspace), so that a changed or deleted file
takes its rows with it. There are no keys and indices: the files are the truth, and DuckDB scans columns faster than
it maintains an index on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def first_tables(connection: Any) -> None:
    """What there is to find: corpora, query sets, jobs, and what came out of them."""
    for statement in (
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
    ):
        connection.execute(statement)


def retrievers_view(connection: Any) -> None:
    """One row per retriever that was trained here or evaluated: a view, since it follows from the other tables."""
    connection.execute(
        """CREATE VIEW retrievers AS
           WITH found AS (
               SELECT id, name, 'job' AS kind, model_hash AS hash, created FROM trainings
               UNION ALL
               SELECT retriever_id, retriever_name, retriever_kind, retriever_hash, created FROM evaluations)
           SELECT id, arg_max(name, created) AS name, arg_max(kind, created) AS kind,
                  arg_max(hash, created) AS hash, min(created) AS first_seen,
                  (SELECT count(*) FROM evaluations e WHERE e.retriever_id = found.id) AS n_evaluations
           FROM found GROUP BY id"""
    )


def retrievers_without_studies(connection: Any) -> None:
    """The trainings of studies are rows of ``evaluations`` now. Their models are not kept: they are no retrievers."""
    connection.execute(
        """CREATE OR REPLACE VIEW retrievers AS
           WITH known AS (
               SELECT id, name, 'job' AS kind, model_hash AS hash, created FROM trainings
               UNION ALL
               SELECT retriever_id, retriever_name, retriever_kind, retriever_hash, created FROM evaluations
               WHERE NOT starts_with(retriever_kind, 'study'))
           SELECT id, arg_max(name, created) AS name, arg_max(kind, created) AS kind,
                  arg_max(hash, created) AS hash, min(created) AS first_seen,
                  (SELECT count(*) FROM evaluations e
                   WHERE e.retriever_id = known.id AND NOT starts_with(retriever_kind, 'study')) AS n_evaluations
           FROM known GROUP BY id"""
    )


MIGRATIONS: tuple[Callable[[Any], None], ...] = (first_tables, retrievers_view, retrievers_without_studies)


def version(connection: Any) -> int:
    """How many steps the catalogue has taken; 0 for an empty file."""
    import duckdb

    try:
        return int(connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone()[0])
    except duckdb.CatalogException:
        return 0


def migrate(connection: Any) -> None:
    """Take the steps that are missing, each in a transaction of its own."""
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (number INTEGER, name VARCHAR)")
    for number, step in enumerate(MIGRATIONS[version(connection) :], version(connection) + 1):
        connection.execute("BEGIN")
        step(connection)
        connection.execute("INSERT INTO migrations VALUES (?, ?)", [number, step.__name__])
        connection.execute("COMMIT")
