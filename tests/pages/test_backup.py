"""Back up, bring in and clear away, on the overview; and a workspace that a newer version wrote."""

from __future__ import annotations

import json
import zipfile

import pytest

from cdp.base.archives import LIST
from cdp.base.versions import FILE
from cdp.base.workspace import Workspace, write_json
from cdp.services import queries
from cdp.services.sharing import modes
from tests.pages.conftest import Open


def test_a_backup_is_written_and_the_command_stands_beside_it(open_page: Open, filled: Workspace) -> None:
    at = open_page("overview")
    at.session_state["backup"] = True
    at.run()
    target = filled.root.parent / "backup.zip"
    at.text_input(key="backup_target").set_value(str(target))
    at.button(key="backup_export").click().run()
    assert not at.error, [error.value for error in at.error]
    listed = json.loads(zipfile.ZipFile(target).read(LIST))
    assert any(queries.list_query_sets(filled)[0].id in entry["path"] for entry in listed["files"])
    assert any("written to" in box.value for box in at.success)


def test_what_can_go_is_shown_before_it_goes(open_page: Open, filled: Workspace) -> None:
    write_json(filled.embeddings / "key" / "manifest.json", {})
    at = open_page("overview")
    at.session_state["backup"] = True
    at.run()
    assert (filled.embeddings / "key").exists()
    at.button(key="backup_prune").click().run()
    assert not (filled.embeddings / "key").exists()


def test_a_read_only_dashboard_offers_none_of_it(
    open_page: Open, filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(modes.READ_ONLY, "1")
    at = open_page("overview")
    at.session_state["backup"] = True
    at.run()
    for key in ("backup_export", "backup_import", "backup_prune"):
        assert at.button(key=key).disabled, key


def test_a_workspace_of_a_newer_version_is_refused_on_every_page(open_page: Open, filled: Workspace) -> None:
    write_json(filled.root / FILE, {"format": 99})
    at = open_page("overview")
    assert any("Update CDP Studio" in box.value for box in at.error)
    assert not at.metric
