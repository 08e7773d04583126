"""An older catalogue is brought forward step by step; a newer one is rebuilt, since the files are the truth."""

from __future__ import annotations

import duckdb
import pytest

from cdp import catalog
from cdp.base.workspace import Workspace
from cdp.catalog import migrations
from tests.catalog.support import add_evaluation

pytestmark = pytest.mark.slow


def test_an_older_catalogue_keeps_its_rows_and_gains_the_new_steps(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    monkeypatch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
    workspace.root.mkdir(exist_ok=True)
    with duckdb.connect(str(workspace.catalog)) as connection:
        migrations.migrate(connection)
        connection.execute("INSERT INTO notes VALUES ('2026', 'kept')")
        assert migrations.version(connection) == 1
    monkeypatch.undo()
    assert [row["id"] for row in catalog.retrievers(workspace)] == ["a"]
    assert catalog.notes(workspace) == [("2026", "kept")]


@pytest.mark.slow
def test_a_newer_catalogue_is_rebuilt(workspace: Workspace) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    catalog.ingest(workspace)
    with duckdb.connect(str(workspace.catalog)) as connection:
        connection.execute("INSERT INTO migrations VALUES (999, 'from_the_future')")
    assert len(catalog.evaluations(workspace)) == 1
    assert "newer version" in catalog.notes(workspace)[0][1]


def test_steps_are_numbered_by_their_order(workspace: Workspace) -> None:
    catalog.ingest(workspace)
    recorded = catalog.query(workspace, "SELECT number, name FROM migrations ORDER BY number").rows
    assert recorded == [(n, step.__name__) for n, step in enumerate(migrations.MIGRATIONS, 1)]


def schema(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, ...]]:
    """Every column of every table and view, in order."""
    return connection.execute(
        "SELECT table_name, column_name, data_type, ordinal_position FROM information_schema.columns ORDER BY ALL"
    ).fetchall()


@pytest.mark.parametrize("taken", range(len(migrations.MIGRATIONS) + 1))
def test_a_catalogue_of_each_version_becomes_the_present_one(
    workspace: Workspace, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made by the first so many steps, with rows in each table: the same schema as a new one, and the same rows."""
    add_evaluation(workspace, "evaluate-1", "a")
    with duckdb.connect() as new:
        migrations.migrate(new)
        expected = schema(new)
    monkeypatch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:taken])
    with duckdb.connect(str(workspace.catalog)) as connection:
        migrations.migrate(connection)
        assert migrations.version(connection) == taken
        if taken:
            connection.execute("INSERT INTO notes VALUES ('2026', 'kept')")
            connection.execute("INSERT INTO jobs (source, id) VALUES ('jobs/gone/spec.json', 'gone')")
    monkeypatch.undo()
    assert [row["id"] for row in catalog.evaluations(workspace)] == ["evaluate-1"]
    assert catalog.notes(workspace) == ([("2026", "kept")] if taken else [])
    with duckdb.connect(str(workspace.catalog), read_only=True) as connection:
        assert schema(connection) == expected
        assert connection.execute("SELECT count(*) FROM jobs WHERE id = 'gone'").fetchone() == (int(taken > 0),)
