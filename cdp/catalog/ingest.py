"""Updating the catalogue from the files: incremental and idempotent.

Files are parsed before the lock is taken, and written in batches, each in one short transaction. Each file's rows are
replaced together, so processes that ingest at the same time do no harm.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cdp.base.errors import WorkspaceError
from cdp.base.text import storable
from cdp.base.workspace import Workspace
from cdp.catalog import connection as db

if TYPE_CHECKING:
    import duckdb


Fields = dict[str, Any]
T = TypeVar("T")

# Studies have one file per training, in this folder of their results.
STUDIES, CONDITIONS = "study-", "conditions"
# `retriever_kind` of evaluations in a study: of one of its trainings, or of the untrained retriever.
STUDY, STUDY_START = "study", "study-start"

ROUNDS = 10  # attempts to bring the catalogue up to date while files change or it turns out damaged
BATCH_FILES = 1000
BATCH_SCORES = 2_000_000


class _BadContentError(Exception):
    """A file does not have the content that its path promises; the message says why."""


@dataclass(slots=True)
class Content:
    """The content of one file: rows by table, scores as (evaluation id, measure, query ids, values), or a problem."""

    path: str
    stamp: str
    hash: str = ""
    problem: str = ""
    rows: dict[str, list[Fields]] = field(default_factory=dict)
    scores: list[tuple[str, str, list[str], list[float]]] = field(default_factory=list)


def scan(workspace: Workspace) -> dict[str, str]:
    """Return all source files: path relative to the workspace → stamp."""
    stamps: dict[str, str] = {}
    above = len(os.path.join(workspace.root, ""))  # thousands of relpath take a while
    for path in _candidates(workspace):
        try:
            stat = os.stat(path)
        except OSError:
            continue
        stamps[path[above:]] = _stamp(stat)
    return stamps


def _stamp(stat: os.stat_result) -> str:
    # Files are replaced by rename, so new content has a new inode, even if the clock was set back.
    return f"{stat.st_mtime_ns}-{stat.st_size}-{stat.st_ino}"


def _candidates(workspace: Workspace) -> Iterator[str]:
    for folder in _entries(workspace.jobs):
        for name in RESULTS:
            yield os.path.join(folder.path, "results", f"{name}.json")
        if folder.name.startswith(STUDIES):
            conditions = _entries(os.path.join(folder.path, "results", CONDITIONS))
            yield from (entry.path for entry in conditions if entry.name.endswith(".json"))


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]
    return []


def read(workspace: Workspace, path: str, stamp: str) -> Content:
    """Return the rows of one source file; its stamp may be newer than the ``stamp`` seen."""
    content = Content(path, stamp)
    try:
        with open(workspace.root / path, "rb") as file:
            content.stamp = _stamp(os.fstat(file.fileno()))
            data = file.read()
        content.hash = hashlib.sha256(data).hexdigest()[:16]
        value = json.loads(data)
        if not isinstance(value, dict):
            raise _BadContentError("it does not hold a JSON object")
        _reader(path)(value, content)
        if b"\\u" in data and not storable(json.dumps(value, ensure_ascii=False)):
            raise _BadContentError("it holds half of a surrogate pair")
    except _BadContentError as error:
        content.problem = str(error)
    except OSError as error:
        content.problem = f"it cannot be read: {error.strerror or error}"
    except (ValueError, RecursionError) as error:
        content.problem = f"it is not valid JSON: {error}"
    except (KeyError, TypeError, AttributeError) as error:
        content.problem = f"its fields are not as expected ({type(error).__name__}: {error})"
    if content.problem:
        content.rows, content.scores = {}, []
    return content


def _reader(path: str) -> Callable[[Fields, Content], None]:
    file = Path(path)
    return _condition if file.parent.name == CONDITIONS else RESULTS[file.stem]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _real(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _whole(value: Any) -> int | None:
    return None if (number := _real(value)) is None else int(number)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


READ: dict[str, Callable[[Any], Any]] = {db.TEXT: _text, db.WHOLE: _whole, db.REAL: _real}


def _row(table: str, value: Fields) -> Fields:
    """Return the columns of a table from the fields of these names, each with its type; absent ones are empty."""
    return {name: READ[kind](value.get(name)) for name, kind in db.TABLES[table].items() if kind in READ}


def _job_id(path: str) -> str:
    return Path(path).parts[1]


def _evaluation(value: Fields, content: Content) -> None:
    retriever, benchmark, job_id = value["retriever"], value["benchmark"], _job_id(content.path)
    facts = {
        **{name: benchmark.get(name) for name in ("folder", "split", "n_queries", "n_documents")},
        "id": value.get("id") or job_id,
        "job_id": job_id,
        "retriever_id": retriever["id"],
        "retriever_name": retriever.get("name") or retriever["id"],
        "retriever_kind": retriever.get("kind"),
        "retriever_hash": retriever.get("hash"),
        "benchmark": benchmark["name"],
        "benchmark_hash": benchmark.get("hash"),
        "protocol": value.get("protocol"),
        "created": value.get("created"),
    }
    per_query = value.get("per_query") or {}
    scores = {name: values for name, values in per_query.items() if name != "query_ids"}
    _add_evaluation(content, facts, value, per_query.get("query_ids", []), scores)


def _condition(value: Fields, content: Content) -> None:
    """Read the evaluations of one training of a study, or of the untrained retriever; none of a failed training."""
    if value.get("failure"):
        return
    study, key, about = _job_id(content.path), _text(value["key"])[:8], value["condition"]
    name = _text(value.get("run") or value["retriever"])
    run = f"{study}.{key}"
    for place, evaluation in value["evaluations"].items():
        judgments, split, protocol = [*_text(place).split("/", 2), "", ""][:3]
        if not protocol:
            raise _BadContentError(f"{place!r} does not name judgments, split and protocol")
        ids = evaluation["query_ids"]
        settings = {**evaluation.get("settings", {}), "study": study, "condition": about, "key": _text(value["key"]),
                    "training": value.get("training"), "settings": value.get("settings")}  # fmt: skip
        facts = {
            "id": f"{run}.{hashlib.sha256(_text(place).encode()).hexdigest()[:6]}",
            "job_id": study,
            "retriever_id": run if about is not None else name,
            "retriever_name": _text(value.get("title") or name) if about is None else f"{name} in {study}",
            "retriever_kind": STUDY if about is not None else STUDY_START,
            "benchmark": evaluation["benchmark"],
            "split": split,
            "benchmark_hash": judgments,
            "protocol": protocol,
            "n_queries": len(ids),
            "n_documents": (_whole(evaluation.get("n_texts")) or len(ids)) - len(ids),
            "created": value.get("created"),
        }
        scores = {"ndcg@10": evaluation["ndcg@10"]}
        _add_evaluation(content, facts, {**evaluation, "settings": settings}, ids, scores)


def _add_evaluation(content: Content, facts: Fields, value: Fields, query_ids: list[Any], scores: Fields) -> None:
    """Add an evaluation's row with its measures, and its ``scores`` by measure."""
    measures = {str(name): _real(mean) for name, mean in value["measures"].items()}
    for name, mean in measures.items():
        if mean is None:
            raise _BadContentError(f"its measure {name!r} is {value['measures'][name]!r}, not a number")
    own = {"ndcg@10": measures.get("ndcg@10"), "seconds": value.get("seconds"), "hash": content.hash}
    texts = {name: _json(value.get(name, {})) for name in ("settings", "counts")}
    row = {**_row("evaluations", {**facts, **own, **texts}), "measures": list(measures.items())}
    content.rows.setdefault("evaluations", []).append(row)
    ids = [str(query_id) for query_id in query_ids]
    for name, values in scores.items():
        if len(values) != len(ids):
            raise _BadContentError(f"it has {len(ids)} query ids but {len(values)} values of {name!r}")
        content.scores.append((row["id"], str(name), ids, [float(number) for number in values]))


def _training(value: Fields, content: Content) -> None:
    job_id = _job_id(content.path)
    own = {"id": value.get("id") or job_id, "job_id": job_id, "result": _json(value)}
    named = {"name": value.get("name") or own["id"]}
    content.rows["trainings"] = [_row("trainings", {**value, **own, **named})]


# Readers of results, by the name of the file.
RESULTS: dict[str, Callable[[Fields, Content], None]] = {
    "evaluation": _evaluation,
    "training": _training,
}


@dataclass(slots=True)
class IngestReport:
    """The number of files that were read or removed, unusable files with the reason, and a note on a rebuild."""

    read: int = 0
    removed: int = 0
    problems: list[str] = field(default_factory=list)
    note: str = ""


def ingest(workspace: Workspace) -> IngestReport:
    """Update the catalogue. Cheap if nothing changed: the files' stamps are compared."""
    report = IngestReport()
    problems = "SELECT path || ': ' || problem FROM files WHERE problem <> '' ORDER BY path"
    rows = with_catalog(workspace, lambda connection: connection.execute(problems).fetchall(), report)
    report.problems = [problem for (problem,) in rows]
    return report


def rebuild(workspace: Workspace) -> IngestReport:
    """Rebuild the catalogue from the files."""
    db.reset(workspace)
    return ingest(workspace)


def with_catalog(
    workspace: Workspace,
    task: Callable[[duckdb.DuckDBPyConnection], T],
    report: IngestReport | None = None,
    *,
    foreign_sql: bool = False,
) -> T:
    """Return ``task(connection)`` on an up-to-date catalogue, read-only. A damaged one is rebuilt first.

    If the workspace cannot be written, a copy in a temporary folder is used. ``task`` may be called more than once and
    must fetch its results before it returns. ``foreign_sql``: SQL that people wrote can reach nothing else.
    """
    report = report if report is not None else IngestReport()
    workspace = db.writable(workspace)
    problem = ""
    for look in range(1, ROUNDS + 1):
        identity = db.identity(workspace)
        known: dict[str, str] = {}
        present = scan(workspace)
        try:
            with db.reading(workspace, foreign_sql=foreign_sql) as connection:
                known = dict(connection.execute("SELECT path, stamp FROM files").fetchall())
                same = all(known.get(path) == stamp for path, stamp in present.items())
                # In a busy workspace files change all the time: the last look takes what is there.
                if look == ROUNDS or (same and not _deleted(workspace, known, present)):
                    return task(connection)
        except db.UnusableError as error:
            if problem := error.damage:
                report.note = f"The catalogue has been rebuilt from the files: {problem}."
            known = {}
            db.reset(workspace, only=identity)
        with suppress(db.UnusableError):  # damaged while it was written: the next look rebuilds it
            _apply(workspace, known, present, report)
    raise WorkspaceError(
        f"{workspace.catalog} could not be brought up to date in {ROUNDS} attempts{f': {problem}' if problem else ''}.",
        hint="Is the disk failing, or does another program rebuild it again and again?",
    )


def _deleted(workspace: Workspace, known: dict[str, str], present: dict[str, str]) -> list[str]:
    # A known file that is not present may have been added after the scan.
    return [path for path in known if path not in present and not (workspace.root / path).exists()]


def _apply(workspace: Workspace, known: dict[str, str], present: dict[str, str], report: IngestReport) -> None:
    """Write the difference between the catalogue and the present files."""
    deleted = _deleted(workspace, known, present)
    changed = [(path, stamp) for path, stamp in present.items() if known.get(path) != stamp]
    for batch in _batches(read(workspace, path, stamp) for path, stamp in changed):
        with db.writing(workspace) as connection:
            _replace_rows(connection, [content.path for content in batch], batch)
    if deleted:
        with db.writing(workspace) as connection:
            _replace_rows(connection, deleted, [])
    report.read += len(changed)
    report.removed += len(deleted)


def _batches(contents: Iterator[Content]) -> Iterator[list[Content]]:
    batch: list[Content] = []
    scores = 0
    for content in contents:
        batch.append(content)
        scores += sum(len(values) for *_, values in content.scores)
        if len(batch) >= BATCH_FILES or scores >= BATCH_SCORES:
            yield batch
            batch, scores = [], 0
    if batch:
        yield batch


def _replace_rows(connection: Any, paths: list[str], contents: list[Content]) -> None:
    """Drop the rows of ``paths``, then insert those of ``contents``, column-wise through Arrow."""
    import pyarrow as pa

    connection.register("replaced", pa.table({"path": pa.array(paths, pa.string())}))
    outdated = "SELECT id FROM evaluations WHERE source IN (SELECT path FROM replaced)"
    connection.execute(f"DELETE FROM scores WHERE evaluation_id IN ({outdated})")
    for table in db.TABLES:
        connection.execute(f"DELETE FROM {table} WHERE source IN (SELECT path FROM replaced)")
    connection.execute("DELETE FROM files WHERE path IN (SELECT path FROM replaced)")
    connection.unregister("replaced")
    if not contents:
        return
    kinds = {
        db.TEXT: pa.string(),
        db.WHOLE: pa.int64(),
        db.REAL: pa.float64(),
        db.MEASURES: pa.map_(pa.string(), pa.float64()),
    }
    for table, columns in db.TABLES.items():
        if rows := [{**row, "source": c.path} for c in contents for row in c.rows.get(table, ())]:
            # A column of nulls has no type of its own.
            schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
            _insert(connection, table, pa.Table.from_pylist(rows, schema=schema))
    scores = [entry for content in contents for entry in content.scores]
    if scores:
        texts, numbers = pa.list_(pa.string()), pa.list_(pa.float64())
        lists = {"evaluation_id": pa.string(), "measure": pa.string(), "query_id": texts, "value": numbers}
        arrays = [
            pa.array(values, kind) for values, kind in zip(zip(*scores, strict=True), lists.values(), strict=True)
        ]
        long = "evaluation_id, measure, unnest(query_id) AS query_id, unnest(value) AS value"
        _insert(connection, "scores", pa.table(arrays, names=list(lists)), long)
    names = ("path", "stamp", "hash", "problem")
    files = {name: pa.array([getattr(content, name) for content in contents], pa.string()) for name in names}
    _insert(connection, "files", pa.table(files))


def _insert(connection: Any, table: str, data: Any, columns: str = "*") -> None:
    connection.register("incoming", data)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT {columns} FROM incoming")
    connection.unregister("incoming")
