"""An older catalogue is brought forward step by step; a newer one is rebuilt, since the files are the truth."""

from __future__ import annotations

import duckdb
import pytest

from cdp import catalog
from cdp.catalog import migrations
from cdp.workspace import Workspace
from tests.catalog.support import add_evaluation


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
