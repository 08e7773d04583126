"""A catalogue that came with a copied workspace: it is data of the files here, or nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from cdp import catalog
from cdp.base.workspace import Workspace, write_json
from cdp.catalog import database as db
from tests.catalog.support import add_evaluation
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

SECRET = "the content of a private file"
FILES = "SELECT content AS source, 'x' AS stamp, content AS problem FROM read_text('PRIVATE')"


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    add_evaluation(workspace, "evaluate-1", "a")
    catalog.ingest(workspace)
    return workspace


def marked(workspace: Workspace) -> None:
    """Make the catalogue pass for one that was made here: the stranger guessed the inode."""
    about = {"version": db.VERSION, "inode": workspace.catalog.stat().st_ino}
    write_json(workspace.catalog.with_suffix(".json"), about)


# Statements on a catalogue of ours.
ACTS = {
    "a view that reads a file": ["DROP TABLE files", f"CREATE VIEW files AS {FILES}"],
    "a view in place of the results": [
        "ALTER TABLE evaluations RENAME TO kept", "CREATE VIEW evaluations AS SELECT * FROM kept",
    ],
    "a further view": [f"CREATE VIEW more AS {FILES}"],
    "a macro in place of a function": ["CREATE MACRO list_contains(l, x) AS true"],
    "a macro in place of an operator": ['CREATE MACRO "+"(a, b) AS 99'],
    "a table macro": ["CREATE MACRO duckdb_tables() AS TABLE SELECT 'x' AS sql"],
    "a trigger": [
        "CREATE TRIGGER t AFTER INSERT ON files FOR EACH STATEMENT INSERT INTO trainings (source) VALUES ('x')",
    ],
    "a computed column": [
        "DROP TABLE files",
        "CREATE TABLE files (source VARCHAR, stamp VARCHAR, problem VARCHAR GENERATED ALWAYS AS (source || '!'))",
    ],
    "a computed default": ["ALTER TABLE files ALTER problem SET DEFAULT current_setting('home_directory')"],
    "a sequence": ["CREATE SEQUENCE s"],
    "an index": ["CREATE INDEX i ON files (source)"],
    "a schema with a table": ["CREATE SCHEMA s", "CREATE TABLE s.files (source VARCHAR)"],
    "a type": ["CREATE TYPE t AS ENUM ('a')"],
    "a table called as DuckDB's own": ["CREATE TABLE duckdb_views (internal BOOLEAN)"],
}  # fmt: skip


def rebuilt(workspace: Workspace, before: list[dict[str, Any]]) -> None:
    """What is shown is what the files say, and nothing else is left in the catalogue."""
    marked(workspace)
    assert catalog.evaluations(workspace) == before
    assert catalog.query(workspace, "SELECT problem FROM files").rows == [("",)]
    assert catalog.query(workspace, "SELECT 1 + 1").rows == [(2,)]
    with duckdb.connect(str(workspace.catalog), read_only=True) as connection:
        assert db._objects(connection) == db._expected_objects()


@pytest.fixture
def private(tmp_path: Path) -> Path:
    file = tmp_path / "private.txt"
    file.write_text(SECRET)
    return file


@pytest.mark.parametrize("act", ACTS)
def test_a_catalogue_that_could_act_is_made_again(filled: Workspace, private: Path, act: str) -> None:
    before = catalog.evaluations(filled)
    newest = private.with_name("newest.duckdb")  # ours is written for DuckDB 1.4, which holds no trigger
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{filled.catalog}' AS ours (READ_ONLY); ATTACH '{newest}' AS theirs")
        connection.execute("COPY FROM DATABASE ours TO theirs")
    filled.catalog.write_bytes(newest.read_bytes())
    with duckdb.connect(str(filled.catalog)) as connection:
        for statement in ACTS[act]:
            connection.execute(statement.replace("PRIVATE", str(private)))
    rebuilt(filled, before)


def test_a_log_that_came_with_it_makes_no_entries_either(filled: Workspace, private: Path) -> None:
    """DuckDB plays its write-ahead log when it opens the file."""
    before = catalog.evaluations(filled)
    script = (
        "import duckdb, os, sys; connection = duckdb.connect(sys.argv[1]);"
        "connection.execute(\"SET checkpoint_threshold = '1GB'\");"
        "[connection.execute(statement) for statement in sys.argv[2:]]; os._exit(0)"
    )
    statements = [statement.replace("PRIVATE", str(private)) for statement in ACTS["a view that reads a file"]]
    subprocess.run([sys.executable, "-c", script, str(filled.catalog), *statements], check=True, timeout=60)
    assert filled.catalog.with_name("catalog.duckdb.wal").exists()
    rebuilt(filled, before)


def test_a_copy_is_not_opened_and_its_rows_do_not_count(filled: Workspace) -> None:
    with duckdb.connect(str(filled.catalog)) as connection:
        connection.execute("INSERT INTO evaluations (source, id, created) VALUES ('x', 'of no file', '2099')")
    copy = Workspace(filled.root.with_name("copy"))
    shutil.copytree(filled.root, copy.root)
    assert [row["id"] for row in catalog.evaluations(copy)] == ["evaluate-1"]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    other = path.with_name("other.duckdb")
    duckdb.connect(str(other)).close()
    path.symlink_to(other)


def _of_another_program(path: Path) -> None:
    """DuckDB would load an extension for it, from the network."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE files (source, stamp)")
    connection.commit()
    connection.close()


def _of_no_program(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("make", [_pipe, _link, _of_another_program, _of_no_program])
@pytest.mark.parametrize("log", [False, True])
def test_other_files_of_its_name_are_replaced(filled: Workspace, make: Callable[[Path], None], log: bool) -> None:
    before = catalog.evaluations(filled)
    path = filled.catalog.with_name(f"{filled.catalog.name}.wal") if log else filled.catalog
    path.unlink(missing_ok=True)
    make(path)
    marked_path = filled.catalog if log else path
    write_json(filled.catalog.with_suffix(".json"), {"version": db.VERSION, "inode": marked_path.lstat().st_ino})
    assert catalog.evaluations(filled) == before
    assert filled.catalog.is_file()
    assert not filled.catalog.is_symlink()


def test_a_process_without_file_descriptors_says_so(filled: Workspace) -> None:
    """With one left DuckDB ends the process; the limit is that of a process of ours."""
    script = """
import os, resource, sys
from pathlib import Path
import duckdb, pyarrow
from cdp import catalog
from cdp.base.errors import WorkspaceError
from cdp.base.workspace import Workspace

workspace = Workspace(Path(sys.argv[1]))
catalog.evaluations(workspace)
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
held = [os.open(os.devnull, os.O_RDONLY)]
while held[-1] < 99:
    held.append(os.open(os.devnull, os.O_RDONLY))
told, answered = [], 0
for left in range(30):
    try:
        answered += len(catalog.evaluations(workspace))
    except WorkspaceError as error:
        told.append(str(error))
    os.close(held.pop())
print(len(told), answered, told[-1])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(filled.root)], capture_output=True, text=True, cwd=REPOSITORY, timeout=60
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told, answered, sentence = done.stdout.split(maxsplit=2)
    assert int(told) + int(answered) == 30
    assert int(answered) > 5
    assert "Too many open files" in sentence
    assert "ulimit -n" in sentence


@pytest.mark.parametrize(("soft", "hard", "after"), [(256, 300, 300), (100, 9000, 8192), (8500, 9000, 8500)])
def test_a_dashboard_may_open_many_files(soft: int, hard: int, after: int) -> None:
    script = (
        "import resource, sys; from cdp.base.workspace import many_files;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); many_files();"
        "print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert done.stdout.split() == [str(after), str(hard)]
