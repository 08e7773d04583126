"""Short connections to the catalogue, under a file lock with a bounded wait.

DuckDB lets one process write, and then no other may even open the file. So the file is open for one task at a time:
readers share a lock on ``catalog.lock``, a writer holds it alone. Importing the library takes 0.1 CPU seconds, so the
functions that need it import it.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdp.base.errors import WorkspaceError
from cdp.base.locks import locked
from cdp.base.workspace import Workspace

if TYPE_CHECKING:
    import duckdb


TEXT, WHOLE, REAL, MEASURES = "VARCHAR", "BIGINT", "DOUBLE", "MAP(VARCHAR, DOUBLE)"
# The tables, whose rows are read from files; ``source`` is the file's path.
TABLES = {
    "files": dict.fromkeys(("source", "stamp", "problem"), TEXT),
    "trainings": {
        **dict.fromkeys(("source", "id", "job_id", "name", "retriever", "query_set", "weighting"), TEXT),
        **dict.fromkeys(("pairs", "steps"), WHOLE), "seconds": REAL, "created": TEXT, "result": TEXT,
    },
    "evaluations": {
        **dict.fromkeys(("source", "id", "job_id", "retriever_id", "retriever_name", "retriever_kind"), TEXT),
        **dict.fromkeys(("retriever_hash", "benchmark", "folder", "split", "benchmark_hash", "protocol"), TEXT),
        "ndcg@10": REAL, "measures": MEASURES, "n_queries": WHOLE, "n_documents": WHOLE, "seconds": REAL,
        **dict.fromkeys(("created", "settings", "counts"), TEXT),
    },
    "scores": {**dict.fromkeys(("source", "evaluation_id", "measure", "query_id"), TEXT), "value": REAL},
}  # fmt: skip
# Columns of which a file gives a list: one row per entry.
UNNESTED = ("query_id", "value")
STATEMENTS = (
    "CREATE TABLE version (hash VARCHAR)",
    *(
        f"CREATE TABLE {table} (" + ", ".join(f'"{name}" {kind}' for name, kind in columns.items()) + ")"
        for table, columns in TABLES.items()
    ),
)
VERSION = hashlib.sha256("\n".join(STATEMENTS).encode()).hexdigest()[:16]

WAIT_S = 30.0  # for the catalogue
# For SQL that people wrote: no file but the catalogue can be reached.
READ_ONLY = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "lock_configuration": "true",
}
# DuckDB's words for a full disk, and for other faults that are no damage to the file.
_FULL = re.compile(r"No space left|quota|File too large", re.IGNORECASE)
_BARRED = re.compile(r"Read-only file system|Permission denied|Too many open files")


def writable(workspace: Workspace) -> Workspace:
    """Return the workspace; if it cannot be written, with its catalogue in a temporary folder."""
    if not workspace.root.exists() or os.access(workspace.root, os.W_OK):
        return workspace
    return replace(workspace, catalog_folder=_own_folder(workspace.root))


@functools.cache
def _own_folder(root: Path) -> Path:
    """Return a temporary folder of this process for the workspace."""
    folder = Path(tempfile.mkdtemp(prefix="cdp-catalogue-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class UnusableError(Exception):
    """The catalogue is missing, of another version, or damaged: it has to be rebuilt."""


@contextmanager
def reading(workspace: Workspace, *, foreign_sql: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a read-only connection; ``foreign_sql``: one that can reach nothing else. Raises UnusableError."""
    import duckdb

    with locked(workspace.catalog_lock, "The catalogue", wait_s=WAIT_S, shared=True):
        if not workspace.catalog.exists():
            raise UnusableError
        with _open(workspace.catalog, read_only=True, config=READ_ONLY if foreign_sql else {}) as connection:
            try:
                current = connection.execute("SELECT hash FROM version").fetchall() == [(VERSION,)]
            except (duckdb.CatalogException, duckdb.BinderException):
                current = False
            if not current:
                raise UnusableError
            yield connection


@contextmanager
def writing(workspace: Workspace) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection in one transaction. Raises UnusableError."""
    with (
        locked(workspace.catalog_lock, "The catalogue", wait_s=WAIT_S),
        _open(workspace.catalog, read_only=False) as connection,
    ):
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")


def reset(workspace: Workspace) -> None:
    """Replace the catalogue by an empty one."""
    path = workspace.catalog
    with locked(workspace.catalog_lock, "The catalogue", wait_s=WAIT_S):
        try:
            path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise WorkspaceError.refused(path, "replaced", error) from error
        with _open(path, read_only=False) as connection:
            connection.execute("BEGIN")
            for statement in STATEMENTS:
                connection.execute(statement)
            connection.execute("INSERT INTO version VALUES (?)", [VERSION])
            connection.execute("COMMIT")


@contextmanager
def _open(path: Path, *, read_only: bool, config: dict[str, str] | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the file, waiting for a foreign program that has it open. WorkspaceError names that program."""
    import duckdb

    deadline = time.monotonic() + WAIT_S
    try:
        while True:
            try:
                connection = duckdb.connect(str(path), read_only=read_only, config=dict(config or {}))
                break
            except duckdb.Error as error:
                text = str(error)
                if "Could not set lock" not in text:
                    raise
                if time.monotonic() >= deadline:
                    holder = text.split("held in", 1)[-1].split(". See", 1)[0].strip()
                    raise WorkspaceError(
                        f"The catalogue is busy: {path} is held open by {holder}.",
                        hint="Close that program; the catalogue can be read with `catalog query`.",
                    ) from error
                time.sleep(0.1)
        with connection:
            yield connection
    except duckdb.Error as error:
        raise translated(error, path) from error


def translated(error: duckdb.Error, path: Path) -> Exception:
    """Return UnusableError for a damaged file, WorkspaceError for faults of the disk, else ``error``."""
    import duckdb

    text = str(error)
    if _FULL.search(text):
        return WorkspaceError(
            f"The catalogue {path} cannot be used: the disk is full.", hint="Free some space there and try again."
        )
    if barred := _BARRED.search(text):
        return WorkspaceError(f"The catalogue {path} cannot be used: {barred[0].lower()}.")
    damage = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)
    return UnusableError() if isinstance(error, damage) or "Corrupt database" in text else error


def rows(connection: Any, sql: str) -> list[dict[str, Any]]:
    """Return the result of a query as a list of dictionaries."""
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
