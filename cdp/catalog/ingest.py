"""Bringing the catalogue up to date with the files: only what changed, and any number of times with one result.

Files are read and parsed before the lock is taken, and written in batches, each in one short transaction. Two who
ingest at once do the same work twice and no harm: each file's rows are replaced whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from cdp.base.errors import WorkspaceError
from cdp.base.workspace import Workspace
from cdp.catalog import connection as db
from cdp.catalog.sources import Content, read, scan

if TYPE_CHECKING:
    import duckdb

ROUNDS = 5
"""How often to look again when files change, or the catalogue turns out damaged, while it is brought up to date."""

MOST_ROUNDS = 100
"""How often to look again when other programs rebuild the catalogue meanwhile: each look reads the files anew."""

BATCH_FILES = 1000
BATCH_SCORES = 2_000_000

TABLES = ("corpora", "query_sets", "jobs", "trainings", "evaluations", "metrics")

T = TypeVar("T")


@dataclass(slots=True)
class IngestReport:
    """What an ingest did. ``problems`` are files that cannot be used, with the reason; ``note`` tells of a rebuild."""

    added: int = 0
    updated: int = 0
    removed: int = 0
    unchanged: int = 0
    problems: list[str] = field(default_factory=list)
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def ingest(workspace: Workspace) -> IngestReport:
    """Bring the catalogue up to date. Cheap when nothing changed: one look at the files' stamps."""
    report = IngestReport()
    problems = "SELECT path || ': ' || problem FROM files WHERE problem <> '' ORDER BY path"
    rows = with_catalog(workspace, lambda connection: connection.execute(problems).fetchall(), report)
    report.problems = [problem for (problem,) in rows]
    return report


def rebuild(workspace: Workspace) -> IngestReport:
    """Make the catalogue anew from the files. The present file stays beside it as ``catalog.duckdb.replaced``."""
    db.reset(workspace, "it was asked for")
    return ingest(workspace)


def with_catalog(
    workspace: Workspace,
    task: Callable[[duckdb.DuckDBPyConnection], T],
    report: IngestReport | None = None,
    *,
    foreign_sql: bool = False,
) -> T:
    """``task(connection)`` on an up-to-date catalogue, read-only. A damaged catalogue is rebuilt on the way.

    Where the workspace cannot be written, a copy of the catalogue in a temporary folder is brought up to date instead.
    ``task`` may be called more than once, and has to take all it wants from the connection before it returns. With
    ``foreign_sql``, for SQL that people wrote, nothing but the catalogue can be reached from it.
    """
    import duckdb

    report = report if report is not None else IngestReport()
    workspace = db.writable(workspace)
    asked_for: dict[str, str] | None = None
    damages = 0
    for look in range(MOST_ROUNDS):
        identity = db.identity(workspace)
        try:
            present = scan(workspace)
            asked_for = present if asked_for is None else asked_for
            known: dict[str, str] = {}
            try:
                with db.reading(workspace, foreign_sql=foreign_sql) as connection:
                    known = _files(connection)
                    # In a busy workspace files change while they are read, for ever. All that was there when this
                    # call began is then enough; less is not, for another program may be rebuilding the catalogue.
                    enough = look >= ROUNDS and not _missing(workspace, known, asked_for)
                    if enough or _up_to_date(workspace, known, present):
                        report.unchanged = max(0, len(present) - report.added - report.updated)
                        return task(connection)
            except db.OutdatedError:
                with db.writing(workspace) as connection:
                    known = _files(connection)
            _apply(workspace, known, present, report)
        except (db.DamagedError, duckdb.Error) as error:
            problem = db.translated(error, workspace.catalog) if isinstance(error, duckdb.Error) else error
            if not isinstance(problem, db.DamagedError):
                raise problem from error
            damages += 1
            if damages == ROUNDS:
                raise WorkspaceError(
                    f"{workspace.catalog} was found damaged again and again: {problem}.", hint="Is the disk failing?"
                ) from error
            report.note = f"The catalogue was damaged ({problem}) and has been rebuilt from the files."
            db.reset(workspace, f"it was damaged ({problem})", only=identity)
    raise WorkspaceError(
        f"{workspace.catalog} was made anew by other programs {MOST_ROUNDS} times while it was to be read.",
        hint="End what rebuilds the catalogue again and again.",
    )


def _files(connection: Any) -> dict[str, str]:
    return dict(connection.execute("SELECT path, stamp FROM files").fetchall())


def _up_to_date(workspace: Workspace, known: dict[str, str], present: dict[str, str]) -> bool:
    """Whether nothing that was present is missing or changed, and nothing that is known has gone."""
    if any(known.get(path) != stamp for path, stamp in present.items()):
        return False
    return not _gone(workspace, known, present)


def _gone(workspace: Workspace, known: dict[str, str], present: dict[str, str]) -> list[str]:
    """Known files that are not there; one that was only added after the look around is not gone."""
    return [path for path in known if path not in present and not (workspace.root / path).exists()]


def _missing(workspace: Workspace, known: dict[str, str], asked_for: dict[str, str]) -> bool:
    """Whether a file that was there when it was asked for, and still is, has no rows yet."""
    return any(path not in known and (workspace.root / path).exists() for path in asked_for)


def _apply(workspace: Workspace, known: dict[str, str], present: dict[str, str], report: IngestReport) -> None:
    """Write the difference between what the catalogue knows and what is there."""
    gone = _gone(workspace, known, present)
    changed = [(path, stamp) for path, stamp in present.items() if known.get(path) != stamp]
    for batch in _batches(read(workspace, path, stamp) for path, stamp in changed):
        with db.writing(workspace) as connection:
            _replace_rows(connection, [content.path for content in batch], batch)
    if gone:
        with db.writing(workspace) as connection:
            _replace_rows(connection, gone, [])
    report.added += sum(1 for path, _ in changed if path not in known)
    report.updated += sum(1 for path, _ in changed if path in known)
    report.removed += len(gone)


def _batches(contents: Iterator[Content]) -> Iterator[list[Content]]:
    batch: list[Content] = []
    scores = 0
    for content in contents:
        batch.append(content)
        scores += content.n_scores
        if len(batch) >= BATCH_FILES or scores >= BATCH_SCORES:
            yield batch
            batch, scores = [], 0
    if batch:
        yield batch


def _replace_rows(connection: Any, paths: list[str], contents: list[Content]) -> None:
    """Drop the rows of ``paths``, then insert those of ``contents``, column-wise through Arrow."""
    import pyarrow as pa

    connection.register("gone", pa.table({"path": pa.array(paths, pa.string())}))
    connection.execute(
        "DELETE FROM scores WHERE evaluation_id IN (SELECT id FROM evaluations WHERE source IN (SELECT path FROM gone))"
    )
    for table in TABLES:
        connection.execute(f"DELETE FROM {table} WHERE source IN (SELECT path FROM gone)")
    connection.execute("DELETE FROM files WHERE path IN (SELECT path FROM gone)")
    connection.unregister("gone")
    if not contents:
        return
    for table in TABLES:
        rows = [{"source": c.path, **row} for c in contents for row in c.rows.get(table, ())]
        if rows:
            _insert(connection, table, pa.Table.from_pylist(rows, schema=_schema(pa, rows[0], table)))
    scores = [entry for content in contents for entry in content.scores]
    if scores:
        _insert(connection, "scores", _score_table(pa, scores))
    files = {
        "path": [c.path for c in contents],
        "stamp": [c.stamp for c in contents],
        "hash": [c.hash for c in contents],
        "problem": [c.problem for c in contents],
    }
    _insert(connection, "files", pa.table({name: pa.array(column, pa.string()) for name, column in files.items()}))


def _insert(connection: Any, table: str, data: Any) -> None:
    connection.register("incoming", data)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")
    connection.unregister("incoming")


_WHOLE = frozenset(("n_documents", "n_queries", "per_doc", "pairs", "steps"))
_REAL = frozenset(("ndcg@10", "seconds", "loss_first", "loss_last", "value", "low", "high"))


def _schema(pa: Any, row: dict[str, Any], table: str) -> Any:
    """Arrow types by column, so that a column of nulls keeps its type."""

    def kind(name: str) -> Any:
        if name == "measures" and table == "evaluations":
            return pa.map_(pa.string(), pa.float64())
        return pa.int64() if name in _WHOLE else pa.float64() if name in _REAL else pa.string()

    return pa.schema([(name, kind(name)) for name in row])


def _score_table(pa: Any, scores: list[tuple[str, str, list[str], list[float]]]) -> Any:
    """Long form: one row per evaluation, query and measure. Repeated texts go in as dictionaries."""
    chunks = []
    for evaluation_id, measure, ids, values in scores:
        n = len(ids)
        zeros = pa.repeat(pa.scalar(0, pa.int32()), n)
        columns = [
            pa.DictionaryArray.from_arrays(zeros, pa.array([evaluation_id])),
            pa.array(ids, pa.string()),
            pa.DictionaryArray.from_arrays(zeros, pa.array([measure])),
            pa.array(values, pa.float64()),
        ]
        chunks.append(pa.table(columns, names=["evaluation_id", "query_id", "measure", "value"]))
    return pa.concat_tables(chunks).unify_dictionaries()
