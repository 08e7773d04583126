"""Updating the catalogue from the files, incremental and idempotent: results turned into rows, what counts as changed.

Files are parsed before the lock is taken, and written in batches, each in one short transaction. Each file's rows are
replaced together, so processes that ingest at the same time do no harm.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cdp.base.errors import InputError, WorkspaceError
from cdp.base.job_kind import STUDIES
from cdp.base.records import TRAINING, Count, Real, checked, fields
from cdp.base.workspace import Workspace, parse_json, plain_file
from cdp.catalog import connection as db

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


Fields = dict[str, Any]
# Rows of one file, each with the name of its table.
TableRows = Iterator[tuple[str, Fields]]
T = TypeVar("T")

# Studies have one file per training, in this folder of their results; ids of jobs begin with their kind.
CONDITIONS = "conditions"
_STUDIES = tuple(f"{kind}-" for kind in STUDIES)
# `retriever_kind` of evaluations in a study: of one of its trainings, or of the untrained retriever.
STUDY, STUDY_START = "study", "study-start"

ROUNDS = 10  # attempts to bring the catalogue up to date while files change or it turns out damaged
BATCH_FILES = 100


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
            conditions = _entries(os.path.join(folder.path, "results", CONDITIONS))
            yield from (entry.path for entry in conditions if entry.name.endswith(".json"))


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
    reader = _condition if path.parent.name == CONDITIONS else RESULTS[path.stem]
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
        db.TEXT: pa.string(),
        db.WHOLE: pa.int64(),
        db.REAL: pa.float64(),
        db.MEASURES: pa.map_(pa.string(), pa.float64()),
    }
    columns = ((name, kinds[kind]) for name, kind in db.TABLES[table].items())
    return pa.schema([(name, pa.list_(kind) if name in db.UNNESTED else kind) for name, kind in columns])


def _row(table: str, value: Fields) -> Fields:
    """Return the columns of a table from the fields of these names; an absent text is empty."""
    row = {name: value.get(name) for name in db.TABLES[table]}
    texts = (name for name, kind in db.TABLES[table].items() if kind == db.TEXT)
    return row | {name: "" if row[name] is None else str(row[name]) for name in texts}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# Of an evaluation, and of a study's training, what is read of the fields that the catalogue keeps as JSON.
_SCORED = fields(counts=dict[str, bool | Real], settings=dict[str, Any])
_CONDITION = fields(
    {"condition": fields({"retriever": str, "source": str, "per_doc": Count}) | None}, settings=dict[str, Any] | None,
    training=fields(pairs=Count, documents=Count, steps=Count, steps_taken=Count) | None,
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
    """Read the evaluations of one training of a study, or of the untrained retriever; none of a failed training."""
    if value.get("failure"):
        return
    checked(_CONDITION, value, Path(study))
    key, about, name = value["key"], value["condition"], value.get("run") or value["retriever"]
    run = f"{study}.{key[:8]}"
    for place, evaluation in value["evaluations"].items():
        judgments, split, protocol = place.split("/", 2)
        ids = evaluation["query_ids"]
        settings = {**evaluation.get("settings", {}), "study": study, "condition": about, "key": key,
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
        yield from _scored(facts, {**evaluation, "settings": settings}, ids, {"ndcg@10": evaluation["ndcg@10"]})


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


# Readers of results, by the name of the file.
RESULTS: dict[str, Callable[[Fields, str], TableRows]] = {"evaluation": _evaluation, "training": _training}


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
    db.reset(workspace)
    return ingest(workspace)


def with_catalog(
    workspace: Workspace, task: Callable[[duckdb.DuckDBPyConnection], T], report: IngestReport | None = None
) -> T:
    """Return ``task(connection)`` on an up-to-date catalogue, read-only. A damaged one is rebuilt first.

    If the workspace cannot be written, a copy in a temporary folder is used. ``task`` may be called more than once and
    must fetch its results before it returns.
    """
    report = report if report is not None else IngestReport()
    workspace = db.writable(workspace)
    for look in range(1, ROUNDS + 1):
        known: dict[str, str] = {}
        present = scan(workspace)
        try:
            with db.reading(workspace) as connection:
                known = dict(connection.execute("SELECT source, stamp FROM files").fetchall())
                same = all(known.get(path) == stamp for path, stamp in present.items())
                # In a busy workspace files change all the time: the last look takes what is there.
                if look == ROUNDS or (same and not _deleted(workspace, known, present)):
                    return task(connection)
        except db.UnusableError:
            known = {}
            db.reset(workspace)
        with suppress(db.UnusableError):  # damaged while it was written: the next look rebuilds it
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
    """Replace the rows of ``sources`` by ``contents``."""
    import pyarrow as pa

    with db.writing(workspace) as connection:
        for table, columns in db.TABLES.items():
            connection.execute(f"DELETE FROM {table} WHERE source IN (SELECT unnest(?))", [sources])
            if parts := [content[table] for content in contents if table in content]:
                chosen = (f'unnest("{name}") AS "{name}"' if name in db.UNNESTED else f'"{name}"' for name in columns)
                connection.register("incoming", pa.concat_tables(parts))
                connection.execute(f"INSERT INTO {table} BY NAME SELECT {', '.join(chosen)} FROM incoming")
                connection.unregister("incoming")
