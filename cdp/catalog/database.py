"""The catalogue's file: opened under a lock, brought up to date from the workspace; tables, rows, damage, copies.

DuckDB lets one process write, and then no other may even open the file. So the file is open for one task at a time:
readers share a lock on ``catalog.lock``, a writer holds it alone. Files of the workspace are parsed before the lock is
taken, and written in batches, each in one short transaction. Each file's rows are replaced together, so processes that
ingest at the same time do no harm. Importing DuckDB takes 0.1 CPU seconds, so the functions that need it import it.

A database can act: a view reads files, a macro called ``+`` changes every sum. So a catalogue that came with a copy is
not opened at all (``catalog.json`` names the inode of the one that was made here), one that is opened must hold
``STATEMENTS`` and nothing else, and no connection reaches other files, loads extensions or changes its settings.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import math
import os
import re
import shutil
import stat
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cdp.base.errors import InputError, WorkspaceError
from cdp.base.job_kind import STUDIES
from cdp.base.locks import locked
from cdp.base.records import TRAINING, Count, Real, checked, fields
from cdp.base.workspace import Workspace, parse_json, plain_file, read_json_or_none, write_json

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


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
# Raise it where the same files give other rows.
READING = 2
VERSION = hashlib.sha256("\n".join((*STATEMENTS, str(READING))).encode()).hexdigest()[:16]

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
_OBJECTS = """
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

Fields = dict[str, Any]
# Rows of one file, each with the name of its table.
TableRows = Iterator[tuple[str, Fields]]
T = TypeVar("T")

# Studies have one file per training, in this folder of their results; query sets one per way of measuring them.
CONDITIONS, MEASURED = "conditions", "measures"
# Ids of jobs begin with their kind.
_STUDIES = tuple(f"{kind}-" for kind in STUDIES)
# `retriever_kind` of evaluations in a study: of one of its trainings, or of the untrained retriever.
STUDY, STUDY_START = "study", "study-start"
# In their settings, the retriever's share in the fusion with BM25 that dev chose; None without fusion.
FUSED = "fused"

ROUNDS = 10  # attempts to bring the catalogue up to date while files change or it turns out damaged
BATCH_FILES = 100


# the database, under its lock


def writable(workspace: Workspace) -> Workspace:
    """Return the workspace; if it cannot be written, with its catalogue in a temporary folder."""
    if not workspace.root.exists() or os.access(workspace.root, os.W_OK):
        return workspace
    return replace(workspace, catalog_folder=_own_folder(workspace.root))


@cache
def _own_folder(root: Path) -> Path:
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
            if _objects(connection) != _expected_objects():
                raise UnusableError
            _checked[workspace.catalog] = stamps
        yield connection


def _objects(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return sorted(str(entry) for (entry,) in connection.execute(_OBJECTS).fetchall())


@cache
def _expected_objects() -> list[str]:
    """Return the entries that ``STATEMENTS`` make."""
    import duckdb

    with duckdb.connect(":memory:", config=dict(CLOSED)) as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
        return _objects(connection)


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


# rows, read from the workspace's files


def scan(workspace: Workspace) -> dict[str, str]:
    """Return all source files: path relative to the workspace → stamp."""
    stamps: dict[str, str] = {}
    above = len(os.path.join(workspace.root, ""))  # thousands of relpath take a while
    for path in _candidates(workspace):
        with suppress(OSError):
            stamps[path[above:]] = _stamp(os.stat(path))
    return stamps


def _stamp(stat: os.stat_result) -> str:
    # Files are replaced by rename, so new content has a new inode, even if the clock was set back.
    return f"{stat.st_mtime_ns}-{stat.st_size}-{stat.st_ino}"


def _candidates(workspace: Workspace) -> Iterator[str]:
    for folder in _entries(workspace.jobs):
        for name in RESULTS:
            yield os.path.join(folder.path, "results", f"{name}.json")
        if folder.name.startswith(_STUDIES):
            yield from _json_files(os.path.join(folder.path, "results", CONDITIONS))

    for folder in _entries(workspace.queries):
        yield from _json_files(os.path.join(folder.path, MEASURED))


def _json_files(folder: str) -> Iterator[str]:
    for entry in _entries(folder):
        if entry.name.endswith(".json"):
            yield entry.path


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]
    return []


def read(workspace: Workspace, source: str, stamp: str) -> dict[str, pa.Table]:
    """Return the rows of one source file by table; its stamp may be newer than the ``stamp`` seen.

    Of an unusable file there is only the row of ``files``, with its problem.
    """
    import pyarrow as pa

    problem, rows = "", defaultdict[str, list[Fields]](list)
    path = Path(source)
    reader = BY_FOLDER.get(path.parent.name) or RESULTS[path.stem]
    tables: dict[str, pa.Table] = {}
    try:
        with open(workspace.root / source, "rb", opener=plain_file) as file:
            stamp = _stamp(os.fstat(file.fileno()))
            value = parse_json(file.read())
        for table, row in reader(value, path.parts[1]):
            rows[table].append({**row, "source": source})
        tables = {table: pa.Table.from_pylist(of, schema=_schema(table)) for table, of in rows.items()}
    except (InputError, WorkspaceError) as error:
        problem = str(error)
    except OSError as error:
        problem = f"it cannot be read: {error.strerror or error}"
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        problem = f"it is not valid JSON: {error}"
    except (pa.ArrowException, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        problem = f"its fields are not as expected ({type(error).__name__}: {error})"
    about = {"source": source, "stamp": stamp, "problem": problem}
    return {**tables, "files": pa.Table.from_pylist([about], schema=_schema("files"))}


@cache
def _schema(table: str) -> pa.Schema:
    """The Arrow types of a table's columns; those of ``UNNESTED`` hold a list per row."""
    import pyarrow as pa

    kinds = {
        TEXT: pa.string(),
        WHOLE: pa.int64(),
        REAL: pa.float64(),
        MEASURES: pa.map_(pa.string(), pa.float64()),
    }
    columns = {name: kinds[kind] for name, kind in TABLES[table].items()}
    for name in UNNESTED.get(table, ()):
        columns[name] = pa.list_(columns[name])

    return pa.schema(list(columns.items()))


def _row(table: str, value: Fields) -> Fields:
    """Return the columns of a table from the fields of these names; an absent text is empty."""
    row: Fields = {}
    for name, kind in TABLES[table].items():
        row[name] = value.get(name)
        if kind == TEXT:
            row[name] = "" if row[name] is None else str(row[name])

    return row


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# Of an evaluation, and of a study's training, what is read of the fields that the catalogue keeps as JSON.
_SCORED = fields(counts=dict[str, bool | Real], settings=dict[str, Any])
_CONDITION = fields(
    {"condition": fields({"retriever": str, "source": str, "per_doc": Count}) | None}, settings=dict[str, Any] | None,
    training=fields(pairs=Count, documents=Count, steps=Count, steps_taken=Count) | None,
    fused=fields({"weight": Real, "evaluations": dict[str, Any]}) | None,
)  # fmt: skip


def _evaluation(value: Fields, job_id: str) -> TableRows:
    retriever, benchmark = value["retriever"], value["benchmark"]
    facts = {
        **{name: benchmark.get(name) for name in ("folder", "split", "n_queries", "n_documents")},
        **{f"retriever_{name}": retriever.get(name) for name in ("kind", "hash")},
        "id": value.get("id") or job_id,
        "job_id": job_id,
        "retriever_id": retriever["id"],
        "retriever_name": retriever.get("name") or retriever["id"],
        "benchmark": benchmark["name"],
        "benchmark_hash": benchmark.get("hash"),
        "protocol": value.get("protocol"),
        "seconds": value.get("seconds"),
        "created": value.get("created"),
    }

    scores = dict(value.get("per_query") or {})
    return _scored(facts, value, scores.pop("query_ids", []), scores)


def _condition(value: Fields, study: str) -> TableRows:
    """Read the evaluations of one training of a study, or of the untrained retriever, and of its fusion with BM25; none
    of a failed training."""
    if value.get("failure"):
        return

    checked(_CONDITION, value, Path(study))
    yield from _places(value, study, value["evaluations"])

    fused = value.get("fused")
    if fused:
        yield from _places(value, study, fused["evaluations"], fused["weight"])


def _places(value: Fields, study: str, evaluations: Fields, weight: float | None = None) -> TableRows:
    """Read the evaluations of what a record is of, at each place; ``weight`` is the retriever's share in a fusion."""
    key, about, name = value["key"], value["condition"], value.get("run") or value["retriever"]
    run = f"{study}.{key[:8]}"
    if weight is not None:
        run, name = f"{run}.{FUSED}", f"{FUSED}:{name}"
        about = about and {**about, FUSED: True}

    for place, evaluation in evaluations.items():
        judgments, split, protocol = place.split("/", 2)
        ids = evaluation["query_ids"]
        settings = {**evaluation.get("settings", {}), "study": study, "condition": about, "key": key, FUSED: weight,
                    "training": value.get("training"), "settings": value.get("settings")}  # fmt: skip
        facts = {
            "id": f"{run}.{hashlib.sha256(place.encode()).hexdigest()[:6]}",
            "job_id": study,
            "retriever_id": run if about is not None else name,
            "retriever_name": (value.get("title") or name) if about is None else f"{name} in {study}",
            "retriever_kind": STUDY if about is not None else STUDY_START,
            "benchmark": evaluation["benchmark"],
            "split": split,
            "benchmark_hash": judgments,
            "protocol": protocol,
            "n_queries": len(ids),
            "n_documents": (evaluation.get("n_texts") or len(ids)) - len(ids),
            "created": value.get("created"),
        }
        scores = {name: evaluation[name] for name in ("ndcg@10", "p@1") if name in evaluation}
        yield from _scored(facts, {**evaluation, "settings": settings}, ids, scores)


def _scored(facts: Fields, value: Fields, query_ids: Sequence[Any], scores: Fields) -> TableRows:
    """Yield an evaluation's row with its measures, and its ``scores`` by measure."""
    checked(_SCORED, value, Path(str(facts["job_id"])))
    measures: Fields = value["measures"]
    for name, mean in measures.items():
        if not isinstance(mean, (int, float)) or not math.isfinite(mean):
            raise InputError(f"its measure {name!r} is {mean!r}, not a number")

    own = {"ndcg@10": measures.get("ndcg@10"), "measures": list(measures.items())}
    texts = {name: _json(value.get(name, {})) for name in ("settings", "counts")}
    row = _row("evaluations", {**facts, **own, **texts})
    yield "evaluations", row

    ids = [str(query_id) for query_id in query_ids]
    for name, values in scores.items():
        if len(values) != len(ids):
            raise InputError(f"it has {len(ids)} query ids but {len(values)} values of {name!r}")
        yield "scores", {"evaluation_id": row["id"], "measure": name, "query_id": ids, "value": values}


def _training(value: Fields, job_id: str) -> TableRows:
    checked(TRAINING, value, Path(job_id))
    name = value.get("id") or job_id
    own = {"id": name, "job_id": job_id, "name": value.get("name") or name, "result": _json(value)}
    yield "trainings", _row("trainings", {**value, **own})


def _metrics(value: Fields, name: str) -> TableRows:
    """Read Q-D measures, of a metric job or as they are kept beside the set ``name``; none of an undefined measure."""
    most = max((int(measure["per_doc"]) for measure in value["measures"]), default=0)
    below = {int(m): v for m, v in value.get("by_per_doc", {}).items() if int(m) < most}
    nested = [{"name": "self_bleu", "value": v, "per_doc": m} for m, v in below.items()]
    facts = {name: value.get(name) for name in ("query_set", "query_set_hash", "method", "human", "created")}

    for measure in (*value["measures"], *nested):
        number = measure["value"]
        if number is None:
            continue
        if not isinstance(number, (int, float)) or not math.isfinite(number):
            raise InputError(f"its measure {measure['name']!r} is {number!r}, not a number")
        low, high = measure.get("interval") or (None, None)
        own = {"job_id": "" if "kept" in value else name, "measure": measure["name"], "low": low, "high": high,
               "per_doc": int(measure["per_doc"])}  # fmt: skip
        yield "metrics", _row("metrics", {**measure, **facts, **own})


Reader = Callable[[Fields, str], TableRows]
# Readers of results, by the name of the file, and by that of its folder.
RESULTS: dict[str, Reader] = {"evaluation": _evaluation, "training": _training, "metrics": _metrics}
BY_FOLDER: dict[str, Reader] = {CONDITIONS: _condition, MEASURED: _metrics}


# bringing it up to date


@dataclass(slots=True)
class IngestReport:
    """The number of files that were read, and the unusable files with the reason."""

    read: int = 0
    problems: list[str] = field(default_factory=list)


def ingest(workspace: Workspace) -> IngestReport:
    """Update the catalogue. Cheap if nothing changed: the files' stamps are compared."""
    report = IngestReport()
    problems = "SELECT source || ': ' || problem FROM files WHERE problem <> '' ORDER BY source"
    rows = with_catalog(workspace, lambda connection: connection.execute(problems).fetchall(), report)
    report.problems = [problem for (problem,) in rows]
    return report


def rebuild(workspace: Workspace) -> IngestReport:
    """Rebuild the catalogue from the files."""
    reset(workspace)
    return ingest(workspace)


def with_catalog(
    workspace: Workspace, task: Callable[[duckdb.DuckDBPyConnection], T], report: IngestReport | None = None
) -> T:
    """Return ``task(connection)`` on an up-to-date catalogue, read-only. A damaged one is rebuilt first.

    If the workspace cannot be written, a copy in a temporary folder is used. ``task`` may be called more than once and
    must fetch its results before it returns.
    """
    report = report if report is not None else IngestReport()
    workspace = writable(workspace)
    for look in range(1, ROUNDS + 1):
        known: dict[str, str] = {}
        present = scan(workspace)

        try:
            with reading(workspace) as connection:
                known = dict(connection.execute("SELECT source, stamp FROM files").fetchall())
                same = all(known.get(path) == stamp for path, stamp in present.items())
                # In a busy workspace files change all the time: the last look takes what is there.
                if look == ROUNDS or (same and not _deleted(workspace, known, present)):
                    return task(connection)
        except UnusableError:
            known = {}
            reset(workspace)

        with suppress(UnusableError):  # damaged while it was written: the next look rebuilds it
            report.read += _update(workspace, known, present)

    raise WorkspaceError(
        f"{workspace.catalog} could not be brought up to date in {ROUNDS} attempts.",
        hint="Is the disk failing, or does another program rebuild it again and again?",
    )


def _deleted(workspace: Workspace, known: dict[str, str], present: dict[str, str]) -> list[str]:
    # A known file that is not present may have been added after the scan.
    return [path for path in known if path not in present and not (workspace.root / path).exists()]


def _update(workspace: Workspace, known: dict[str, str], present: dict[str, str]) -> int:
    """Write the difference between the catalogue and the present files; return how many were read."""
    if deleted := _deleted(workspace, known, present):
        _replace(workspace, deleted, [])
    changed = [(path, stamp) for path, stamp in present.items() if known.get(path) != stamp]
    for start in range(0, len(changed), BATCH_FILES):
        batch = changed[start : start + BATCH_FILES]
        _replace(workspace, [path for path, _ in batch], [read(workspace, path, stamp) for path, stamp in batch])
    return len(changed)


def _replace(workspace: Workspace, sources: list[str], contents: Sequence[dict[str, pa.Table]]) -> None:
    import pyarrow as pa

    with writing(workspace) as connection:
        for table, columns in TABLES.items():
            connection.execute(f"DELETE FROM {table} WHERE source IN (SELECT unnest(?))", [sources])
            if parts := [content[table] for content in contents if table in content]:
                lists = UNNESTED.get(table, ())
                chosen = (f'unnest("{name}") AS "{name}"' if name in lists else f'"{name}"' for name in columns)
                connection.register("incoming", pa.concat_tables(parts))
                connection.execute(f"INSERT INTO {table} BY NAME SELECT {', '.join(chosen)} FROM incoming")
                connection.unregister("incoming")
