"""The catalogue, a DuckDB file made from the workspace: reading evaluations, trainings, scores; read-only SQL.

Every reading function updates it first; a missing, damaged or outdated catalogue is rebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING, Any

from cdp.base.errors import InputError, NotFoundError
from cdp.base.text import storable
from cdp.base.workspace import Workspace
from cdp.catalog.database import FUSED, STUDY, STUDY_START, IngestReport, ingest, rebuild, translated, with_catalog

if TYPE_CHECKING:
    import duckdb


__all__ = [
    "FUSED", "STUDY", "STUDY_START", "IngestReport", "QueryResult", "evaluations", "ingest", "metrics", "per_query",
    "query", "rebuild", "runs", "trainings",
]  # fmt: skip


QUERY_TIMEOUT_S = 30.0
QUERY_ROWS = 10_000


def runs(workspace: Workspace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return all evaluations, those of studies included, and all finished trainings, newest first.

    Keys of an evaluation: id, job_id, retriever_id, retriever_name, retriever_kind, retriever_hash, benchmark, folder,
    split, benchmark_hash, protocol, "ndcg@10" and ``measures`` (name to mean, in [0, 1]), n_queries, n_documents,
    seconds, created, settings, counts. Those of studies have the kind ``STUDY`` or ``STUDY_START``, and in their
    settings the study, the condition and its training. Of a training: id, job_id, name, retriever, query_set,
    weighting, pairs, …, and its whole ``result``.
    """

    def task(connection: Any) -> list[list[dict[str, Any]]]:
        return [_rows(connection, table, "id") for table in ("evaluations", "trainings")]

    found, trained = with_catalog(workspace, task)
    for row in found:
        row.pop("source")
        row["measures"] = dict(row["measures"] or {})
        row["settings"], row["counts"] = json.loads(row["settings"]), json.loads(row["counts"])
    for row in trained:
        row.pop("source")
        row["result"] = json.loads(row["result"])
    return found, trained


def _rows(connection: Any, table: str, order: str) -> list[dict[str, Any]]:
    cursor = connection.execute(f"SELECT * FROM {table} ORDER BY created DESC, {order} DESC")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def evaluations(workspace: Workspace, *, studies: bool = False) -> list[dict[str, Any]]:
    """Return all evaluations of ``runs``; with ``studies`` those of studies' trainings as well."""
    return [row for row in runs(workspace)[0] if studies or row["retriever_kind"] not in (STUDY, STUDY_START)]


def trainings(workspace: Workspace) -> list[dict[str, Any]]:
    """Return all trainings of ``runs``."""
    return runs(workspace)[1]


def metrics(workspace: Workspace) -> list[dict[str, Any]]:
    """Return all Q-D measures, newest first.

    Keys: query_set, query_set_hash, method, per_doc, human, measure, value, interval (None for one document),
    n_documents, n_queries, sampled_from, model, threshold, created, job_id (empty: measured without a model).
    """
    found = with_catalog(workspace, lambda connection: _rows(connection, "metrics", "source"))
    for row in found:
        low, high = row.pop("low"), row.pop("high")
        row["interval"] = None if low is None else (low, high)
        row.pop("source")
    return found


def per_query(
    workspace: Workspace, evaluation_ids: Sequence[str], measure: str = "ndcg@10"
) -> dict[str, dict[str, float]]:
    """Return scores: evaluation id → query id → value in [0, 1].

    NotFoundError for one without per-query scores of that measure.
    """

    sql = "SELECT evaluation_id, query_id, value FROM scores WHERE measure = ? AND list_contains(?, evaluation_id)"
    scores: dict[str, dict[str, float]] = {evaluation_id: {} for evaluation_id in evaluation_ids}
    found = with_catalog(workspace, lambda c: c.execute(sql, [measure, list(scores)]).fetchall())
    for evaluation_id, query_id, value in found:
        scores[evaluation_id][query_id] = value

    for evaluation_id, values in scores.items():
        if not values:
            raise NotFoundError(f"evaluation with scores of {measure}", evaluation_id)

    return scores


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a SQL query; ``truncated`` if there are more rows."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    truncated: bool


def query(
    workspace: Workspace, sql: str, *, limit: int = QUERY_ROWS, timeout_s: float = QUERY_TIMEOUT_S
) -> QueryResult:
    """Run one SELECT (or EXPLAIN); nothing can be written, and no other file read.

    InputError for any other statement, invalid SQL, and a query that takes too long.
    """
    import duckdb

    if not storable(sql):
        raise InputError("The SQL holds the character NUL or half of a surrogate pair.")

    def task(connection: duckdb.DuckDBPyConnection) -> QueryResult:
        try:
            statements = connection.extract_statements(sql)
        except duckdb.Error as error:
            raise InputError(f"The SQL cannot be read: {_plain(error)}") from error

        allowed = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
        if len(statements) != 1 or statements[0].type not in allowed:
            raise InputError(
                "The catalogue answers one SELECT at a time and cannot be changed.",
                hint="Its content follows from the files in the workspace.",
            )

        timer = Timer(timeout_s, connection.interrupt)
        timer.start()

        try:
            cursor = connection.execute(statements[0])
            fetched = cursor.fetchmany(limit + 1)
            names = [column[0] for column in cursor.description or []]
        except duckdb.InterruptException:
            raise InputError(f"The query took longer than {timeout_s:g} seconds and was ended.") from None
        except duckdb.Error as error:
            if translated(error, workspace.catalog) is not error:
                raise
            raise InputError(f"The SQL cannot be answered: {_plain(error)}") from error
        finally:
            timer.cancel()

        return QueryResult(names, fetched[:limit], len(fetched) > limit)

    return with_catalog(workspace, task)


def _plain(error: duckdb.Error) -> str:
    """Return the first paragraph of DuckDB's message, on one line."""
    return " ".join(str(error).split("\n\n")[0].split())
