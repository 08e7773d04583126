"""Freeing disk space on the overview; and a workspace of another format."""

from __future__ import annotations

import pytest

from cdp.base.workspace import FORMAT_FILE, Workspace, write_json
from cdp.services import modes
from tests.pages.conftest import Open


def test_what_can_be_deleted_is_listed_first(
    open_page: Open, filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(filled.embeddings / "key" / "manifest.json", {})
    at = open_page("overview")
    at.session_state["prune"] = True
    at.run()
    assert (filled.embeddings / "key").exists()
    monkeypatch.setenv(modes.READ_ONLY, "1")
    at.run()
    assert at.button(key="prune_delete").disabled
    monkeypatch.delenv(modes.READ_ONLY)
    at.run()
    at.button(key="prune_delete").click().run()
    assert not (filled.embeddings / "key").exists()


def test_a_workspace_of_another_format_is_refused_on_every_page(open_page: Open, filled: Workspace) -> None:
    write_json(filled.root / FORMAT_FILE, {"format": 99})
    at = open_page("overview")
    assert any("Use the version that wrote it" in box.value for box in at.error)
    assert not at.metric
