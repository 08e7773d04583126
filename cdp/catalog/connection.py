"""Short connections to DuckDB under a lock, with a bounded wait: tables, columns, catalogues of other places, damage.

DuckDB lets one process write, and then no other may even open the file. So the file is open for one task at a time:
readers share a lock on ``catalog.lock``, a writer holds it alone. Importing the library takes 0.1 CPU seconds, so the
functions that need it import it.

A database can act: a view reads files, a macro called ``+`` changes every sum. So a catalogue that came with a copy is
not opened at all (``catalog.json`` names the inode of the one that was made here), one that is opened must hold
``STATEMENTS`` and nothing else, and no connection reaches other files, loads extensions or changes its settings.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdp.base.errors import WorkspaceError
from cdp.base.locks import locked
from cdp.base.workspace import Workspace, read_json_or_none, write_json

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
    # Q-D measures: a row is told from others by the set as it was, Q/Doc, human set, and what was measured of it.
    "metrics": {
        **dict.fromkeys(("source", "job_id", "query_set", "query_set_hash", "method", "human", "measure"), TEXT),
        **dict.fromkeys(("per_doc", "n_documents", "n_queries", "sampled_from"), WHOLE),
        **dict.fromkeys(("value", "low", "high", "threshold"), REAL), **dict.fromkeys(("model", "created"), TEXT),
    },
}  # fmt: skip
# Columns of which a file gives a list: one row per entry.
UNNESTED = {"scores": ("query_id", "value")}
STATEMENTS = tuple(
    f"CREATE TABLE {table} (" + ", ".join(f'"{name}" {kind}' for name, kind in columns.items()) + ")"
    for table, columns in TABLES.items()
)
VERSION = hashlib.sha256("\n".join(STATEMENTS).encode()).hexdigest()[:16]

WAIT_S = 30.0  # for the catalogue
# No file but the catalogue can be reached.
CLOSED = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "lock_configuration": "true",
    # DuckDB 1.4 opens it, too.
    "storage_compatibility_version": "v1.4.0",
}
# All that people can make in a database. Qualified names: a file may hold a view called ``duckdb_tables``.
_ENTRIES = """
          SELECT sql           FROM system.main.duckdb_tables()
UNION ALL SELECT sql           FROM system.main.duckdb_views() WHERE NOT internal
UNION ALL SELECT sql           FROM system.main.duckdb_indexes()
UNION ALL SELECT sql           FROM system.main.duckdb_triggers()
UNION ALL SELECT sequence_name FROM system.main.duckdb_sequences()
UNION ALL SELECT schema_name   FROM system.main.duckdb_schemas() WHERE NOT internal
UNION ALL SELECT type_name     FROM system.main.duckdb_types() WHERE NOT internal
UNION ALL SELECT function_name FROM system.main.duckdb_functions() WHERE database_name <> 'system' AND NOT internal
"""
# DuckDB aborts the process if it lacks a descriptor while it opens a file.
SPARE_DESCRIPTORS = 16
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
def reading(workspace: Workspace) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a read-only connection. Raises UnusableError."""
    with (
        locked(workspace.catalog_lock, "The catalogue", wait_s=WAIT_S, shared=True),
        _open(workspace, read_only=True) as connection,
    ):
        yield connection


@contextmanager
def writing(workspace: Workspace) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection in one transaction. Raises UnusableError."""
    with locked(workspace.catalog_lock, "The catalogue", wait_s=WAIT_S):
        with _open(workspace, read_only=False) as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
        _checked[workspace.catalog] = _stamps(workspace)


def reset(workspace: Workspace) -> None:
    """Replace the catalogue by an empty one."""
    path = workspace.catalog
    with locked(workspace.catalog_lock, "The catalogue", wait_s=WAIT_S):
        try:
            _log(path).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise WorkspaceError.refused(path, "replaced", error) from error
        with _connected(path, read_only=False) as connection:
            connection.execute("BEGIN")
            for statement in STATEMENTS:
                connection.execute(statement)
            connection.execute("COMMIT")
        try:
            write_json(_mark(path), {"version": VERSION, "inode": path.lstat().st_ino})
        except WorkspaceError as error:
            raise translated(error, path) from error


def _log(path: Path) -> Path:
    """Return DuckDB's write-ahead log, which is there after a crash alone."""
    return path.with_name(f"{path.name}.wal")


def _mark(path: Path) -> Path:
    return path.with_suffix(".json")


# The files of each catalogue that this process has checked or written, as they were then.
_checked: dict[Path, tuple[str, ...]] = {}


def _stamps(workspace: Workspace) -> tuple[str, ...]:
    """Return what tells a changed catalogue from an unchanged one. UnusableError if it is missing or was not made here.

    A file that was copied or unpacked has an inode of its own.
    """
    stamps = []
    for path in (workspace.catalog, _log(workspace.catalog)):
        with suppress(FileNotFoundError):
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode):  # a link, or a pipe, which would be waited for
                raise UnusableError
            stamps.append(f"{about.st_ino} {about.st_size} {about.st_mtime_ns}")
    made = {"version": VERSION, "inode": int(stamps[0].split()[0])} if stamps else None
    if made is None or read_json_or_none(_mark(workspace.catalog)) != made:
        raise UnusableError
    return tuple(stamps)


@contextmanager
def _open(workspace: Workspace, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the catalogue if it is one of ours. Raises UnusableError."""
    stamps = _stamps(workspace)
    with _connected(workspace.catalog, read_only=read_only) as connection:
        if _checked.get(workspace.catalog) != stamps:
            if _entries(connection) != _expected():
                raise UnusableError
            _checked[workspace.catalog] = stamps
        yield connection


def _entries(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return sorted(str(entry) for (entry,) in connection.execute(_ENTRIES).fetchall())


@functools.cache
def _expected() -> list[str]:
    """Return the entries that ``STATEMENTS`` make."""
    import duckdb

    with duckdb.connect(":memory:", config=dict(CLOSED)) as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
        return _entries(connection)


@contextmanager
def _connected(path: Path, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a file, waiting for a foreign program that has it open. WorkspaceError names that program."""
    import duckdb

    deadline = time.monotonic() + WAIT_S
    try:
        while True:
            _check_descriptors(path)
            try:
                connection = duckdb.connect(str(path), read_only=read_only, config=dict(CLOSED))
                break
            except duckdb.Error as error:
                text = str(error)
                if "Could not set lock" not in text:
                    fault = translated(error, path)
                    raise (UnusableError() if fault is error else fault) from error
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


def _check_descriptors(path: Path) -> None:
    """Raise WorkspaceError unless this process can open some files more."""
    spare: list[int] = []
    try:
        for _ in range(SPARE_DESCRIPTORS):
            spare.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        raise WorkspaceError(
            f"The catalogue {path} cannot be opened: {error.strerror or error}.",
            hint="Raise the limit of open files (ulimit -n) and restart the program.",
        ) from error
    finally:
        for descriptor in spare:
            os.close(descriptor)


def translated(error: Exception, path: Path) -> Exception:
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
