"""Short connections to the catalogue, under a file lock with a bounded wait.

DuckDB lets one process write, and then nobody else may even open the file. So the file is open for one task and closed
at once: readers together under a shared lock on ``catalog.lock``, a writer alone under an exclusive one. Nobody ever
sees DuckDB's own lock error, unless a foreign program holds the file.

To start a DuckDB takes sixty times as long as to open a file with one that runs (36 and 0.6 ms). So a process keeps one
or two that have no file open between tasks.

To load the library takes 0.1 CPU seconds, which a command that does not read the catalogue need not pay: what opens a
file or names one of DuckDB's errors imports it.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdp.base.errors import WorkspaceError
from cdp.base.locks import locked
from cdp.base.workspace import Workspace, now

if TYPE_CHECKING:
    import duckdb


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


# How long to wait for the catalogue.
WAIT_S = 30.0


# What a connection for SQL that people wrote is opened with: no file but the catalogue can be reached from it.
READ_ONLY = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "lock_configuration": "true",
}

# DuckDBs that wait for their next task: a process seldom needs more at once.
KEPT = 2

# What the attached file is called: as DuckDB calls one that it was started with, by its stem.
NAME = "catalog"

_waiting: list[duckdb.DuckDBPyConnection] = []


@dataclass(frozen=True)
class _ReadOnlyWorkspace(Workspace):
    """A workspace that cannot be written: its catalogue lies in a folder of this process's own."""

    own: Path = Path()

    @property
    def catalog(self) -> Path:
        return self.own / "catalog.duckdb"

    @property
    def catalog_lock(self) -> Path:
        return self.own / "catalog.lock"


def writable(workspace: Workspace) -> Workspace:
    """The workspace itself, or if its folder cannot be written, the same with its catalogue elsewhere."""
    if not workspace.root.exists() or os.access(workspace.root, os.W_OK):
        return workspace
    return _ReadOnlyWorkspace(workspace.root, own=_own_folder(workspace.root))


@functools.cache
def _own_folder(root: Path) -> Path:
    """A temporary folder, gone with this process, that starts from the catalogue that is there."""
    folder = Path(tempfile.mkdtemp(prefix="cdp-catalogue-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    present = Workspace(root).catalog
    if present.exists() and not present.with_name(present.name + ".wal").exists():
        with suppress(OSError):
            shutil.copyfile(present, folder / present.name)
    return folder


class OutdatedError(Exception):
    """The catalogue is missing, or its schema is not of this version: it has to be prepared first."""


class DamagedError(Exception):
    """The catalogue's file cannot be used: it has to be rebuilt."""


@contextmanager
def _locked(workspace: Workspace, *, shared: bool = False) -> Iterator[None]:
    """The catalogue's lock, behind a turnstile: readers who come while a writer waits go after it.

    Without it, readers that overlap without end would keep a writer out for ever.
    """
    turnstile = workspace.catalog_lock.with_name("catalog.turn")
    with ExitStack() as held:
        held.enter_context(locked(turnstile, "The catalogue", wait_s=WAIT_S, shared=shared))
        if shared:
            held.close()
        held.enter_context(locked(workspace.catalog_lock, "The catalogue", wait_s=WAIT_S, shared=shared))
        yield


@contextmanager
def reading(workspace: Workspace, *, foreign_sql: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection for one task. OutdatedError or DamagedError where it has to be prepared first.

    With ``foreign_sql`` it is a DuckDB of its own, from which SQL that people wrote reaches nothing else.
    """
    with _locked(workspace, shared=True):
        if not workspace.catalog.exists():
            raise OutdatedError
        connection = _open(workspace.catalog, read_only=True, foreign_sql=foreign_sql)
        try:
            with _damage_reported():
                if not is_current(connection):
                    raise OutdatedError
            yield connection
        finally:
            connection.close() if foreign_sql else _release(connection)


@contextmanager
def writing(workspace: Workspace) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection in one transaction, committed at the end. Missing or damaged files are replaced by an empty one."""
    with _locked(workspace):
        connection = _prepared(workspace)
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        _release(connection)


def reset(workspace: Workspace, reason: str, *, only: int | None = None) -> None:
    """Put an empty catalogue in place of the present one, which is kept beside it as ``catalog.duckdb.replaced``.

    With ``only``, the identity of the file that was found damaged, nothing happens if another process has replaced
    that file already.
    """
    with _locked(workspace):
        if only is None or only == identity(workspace):
            _release(_replace(workspace, reason))


def identity(workspace: Workspace) -> int:
    """A number that tells one catalogue file from the next; 0 where there is none."""
    try:
        return workspace.catalog.stat().st_ino
    except OSError:
        return 0


def _prepared(workspace: Workspace) -> duckdb.DuckDBPyConnection:
    """A writing connection to a file of this version's schema. Call it with the lock held."""
    existed = workspace.catalog.exists()
    if not existed:
        workspace.catalog.with_name("catalog.duckdb.wal").unlink(missing_ok=True)
    try:
        connection = _open(workspace.catalog, read_only=False)
        try:
            with _damage_reported():
                if not existed:
                    create(connection)
                elif not is_current(connection):
                    raise DamagedError("another version of CDP Studio wrote it")
        except BaseException:
            connection.close()
            raise
    except DamagedError as damage:
        return _replace(workspace, str(damage))
    return connection


def _replace(workspace: Workspace, reason: str) -> duckdb.DuckDBPyConnection:
    path = workspace.catalog
    try:
        path.with_name(path.name + ".wal").unlink(missing_ok=True)
        if path.exists():
            os.replace(path, path.with_name(path.name + ".replaced"))
    except OSError as error:
        raise WorkspaceError(f"{path} could not be replaced: {error.strerror or error}.") from error
    connection = _open(path, read_only=False)
    create(connection)
    connection.execute("INSERT INTO notes VALUES (?, ?)", [now(), f"The catalogue was rebuilt: {reason}."])
    return connection


def _open(path: Path, *, read_only: bool, foreign_sql: bool = False) -> duckdb.DuckDBPyConnection:
    """Open; wait for a foreign program that has the file open, and name it if the wait is in vain."""
    import duckdb

    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            if foreign_sql:
                return duckdb.connect(str(path), read_only=True, config=dict(READ_ONLY))
            return _attached(path, read_only=read_only)
        except duckdb.Error as error:
            text = str(error)
            if "Could not set lock" not in text:
                raise translated(error, path) from error
            if time.monotonic() >= deadline:
                holder = text.split("held in", 1)[-1].split(". See", 1)[0].strip()
                raise WorkspaceError(
                    f"The catalogue is busy: {path} is held open by {holder}.",
                    hint="Close that program; the catalogue can be read with `catalog query`.",
                ) from error
            time.sleep(0.1)


def _attached(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """A DuckDB that waited, or a new one, with the file open."""
    import duckdb

    try:
        connection = _waiting.pop()
    except IndexError:
        connection = duckdb.connect(":memory:")
    file = str(path).replace("'", "''")
    try:
        connection.execute(f"ATTACH '{file}' AS {NAME}{' (READ_ONLY)' if read_only else ''}; USE {NAME}")
    except BaseException:
        connection.close()
        raise
    return connection


def _release(connection: duckdb.DuckDBPyConnection) -> None:
    """Close the file, and keep the DuckDB for the next task unless the file was damaged under it."""
    import duckdb

    with suppress(duckdb.Error):
        connection.execute(f"USE memory; DETACH {NAME}")
        if len(_waiting) < KEPT:
            _waiting.append(connection)
            return
    connection.close()


@contextmanager
def _damage_reported() -> Iterator[None]:
    """DuckDB's errors while reading our own schema mean that the file is damaged."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise DamagedError(_first_sentence(str(error))) from error


# What DuckDB says when the surroundings are at fault, and the words for it.
_SURROUNDINGS = {
    "No space left": "the disk is full",
    "quota": "the disk quota is used up",
    "File too large": "files may not grow any larger here",
    "Read-only file system": "the disk is read-only",
    "Permission denied": "permission denied",
    "Too many open files": "too many files are open in this process",
}


def translated(error: duckdb.Error, path: Path) -> Exception:
    """DamagedError if the file is at fault, WorkspaceError if the disk or its permissions are, else ``error``."""
    import duckdb

    damage = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)
    text = str(error)
    for sign, fault in _SURROUNDINGS.items():
        if sign in text:
            hint = "Free some space there and try again." if "disk" in fault and "read" not in fault else ""
            return WorkspaceError(f"The catalogue {path} cannot be used: {fault}.", hint=hint)
    if isinstance(error, damage) or "Corrupt database" in text:
        return DamagedError(_first_sentence(text))
    return error


def _first_sentence(text: str) -> str:
    return text.splitlines()[0].rstrip(".")[:300] if text else "unknown error"


def rows(connection: Any, sql: str, parameters: list[Any] | dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The result of a query as a list of dictionaries."""
    cursor = connection.execute(sql, parameters or [])
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
