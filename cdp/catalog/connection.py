"""Short connections to the catalogue, under a file lock with a bounded wait.

DuckDB lets one process write, and then no other may even open the file. So the file is open for one task at a time:
readers share a lock on ``catalog.lock``, a writer holds it alone.

Starting a DuckDB takes 36 ms, opening a file with a running one 0.6 ms: a process keeps up to two without a file.
Importing the library takes 0.1 CPU seconds, so the functions that need it import it.
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

WAIT_S = 30.0  # for the catalogue
# For SQL that people wrote: no file but the catalogue can be reached.
READ_ONLY = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "lock_configuration": "true",
}
KEPT = 2  # running DuckDBs without a file
# The attached file's name: as of a file that DuckDB was started with.
NAME = "catalog"

_waiting: list[duckdb.DuckDBPyConnection] = []

# DuckDB's words for faults of the disk or its permissions, and ours.
_SURROUNDINGS = {
    "No space left": "the disk is full",
    "quota": "the disk quota is used up",
    "File too large": "files may not grow any larger here",
    "Read-only file system": "the disk is read-only",
    "Permission denied": "permission denied",
    "Too many open files": "too many files are open in this process",
}


def create(connection: Any) -> None:
    """Create all tables in an empty file, in one transaction."""
    connection.execute("BEGIN")
    for statement in (*STATEMENTS, "CREATE TABLE version (hash VARCHAR)"):
        connection.execute(statement)
    connection.execute("INSERT INTO version VALUES (?)", [VERSION])
    connection.execute("COMMIT")


def is_current(connection: Any) -> bool:
    """Return True if the catalogue has the tables of this version of CDP Studio."""
    import duckdb

    try:
        return connection.execute("SELECT hash FROM version").fetchall() == [(VERSION,)]
    except (duckdb.CatalogException, duckdb.BinderException):
        return False


@dataclass(frozen=True)
class _ReadOnlyWorkspace(Workspace):
    """A workspace that cannot be written, with its catalogue in a temporary folder."""

    own: Path = Path()

    @property
    def catalog(self) -> Path:
        return self.own / "catalog.duckdb"

    @property
    def catalog_lock(self) -> Path:
        return self.own / "catalog.lock"


def writable(workspace: Workspace) -> Workspace:
    """Return the workspace; if it cannot be written, with its catalogue in a temporary folder."""
    if not workspace.root.exists() or os.access(workspace.root, os.W_OK):
        return workspace
    return _ReadOnlyWorkspace(workspace.root, own=_own_folder(workspace.root))


@functools.cache
def _own_folder(root: Path) -> Path:
    """Return a temporary folder of this process with a copy of the catalogue."""
    folder = Path(tempfile.mkdtemp(prefix="cdp-catalogue-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    present = Workspace(root).catalog
    if present.exists() and not present.with_name(present.name + ".wal").exists():
        with suppress(OSError):
            shutil.copyfile(present, folder / present.name)
    return folder


class OutdatedError(Exception):
    """The catalogue is missing or of another version: it has to be prepared first."""


class DamagedError(Exception):
    """The catalogue's file is damaged: it has to be rebuilt."""


@contextmanager
def _locked(workspace: Workspace, *, shared: bool = False) -> Iterator[None]:
    """Hold the catalogue's lock."""
    # Behind a turnstile: readers that come while a writer waits go after it, else they could starve it.
    turnstile = workspace.catalog_lock.with_name("catalog.turn")
    with ExitStack() as held:
        held.enter_context(locked(turnstile, "The catalogue", wait_s=WAIT_S, shared=shared))
        if shared:
            held.close()
        held.enter_context(locked(workspace.catalog_lock, "The catalogue", wait_s=WAIT_S, shared=shared))
        yield


@contextmanager
def reading(workspace: Workspace, *, foreign_sql: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a read-only connection for one task; ``foreign_sql``: one that can reach nothing else.

    Raises OutdatedError or DamagedError.
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
    """Yield a connection in one transaction. Missing or damaged catalogues are replaced by an empty one."""
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
    """Replace the catalogue by an empty one; the old one is kept as ``catalog.duckdb.replaced``.

    ``only`` is the identity of the damaged file: if another process has replaced it already, nothing is done.
    """
    with _locked(workspace):
        if only is None or only == identity(workspace):
            _release(_replace(workspace, reason))


def identity(workspace: Workspace) -> int:
    """Return the file's inode, 0 if there is none."""
    try:
        return workspace.catalog.stat().st_ino
    except OSError:
        return 0


def _prepared(workspace: Workspace) -> duckdb.DuckDBPyConnection:
    """Return a writing connection to a file of this version's schema. The lock must be held."""
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
    """Open the file; wait for a foreign program that has it open. WorkspaceError names that program."""
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
    """Return a kept DuckDB, or a new one, with the file attached."""
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
    """Detach the file, and keep the DuckDB for the next task unless that fails."""
    import duckdb

    with suppress(duckdb.Error):
        connection.execute(f"USE memory; DETACH {NAME}")
        if len(_waiting) < KEPT:
            _waiting.append(connection)
            return
    connection.close()


@contextmanager
def _damage_reported() -> Iterator[None]:
    """Raise DamagedError for DuckDB's errors in the block, which reads our own schema."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise DamagedError(_first_sentence(str(error))) from error


def translated(error: duckdb.Error, path: Path) -> Exception:
    """Return DamagedError for a damaged file, WorkspaceError for faults of the disk, else ``error``."""
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
    """Return the result of a query as a list of dictionaries."""
    cursor = connection.execute(sql, parameters or [])
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
