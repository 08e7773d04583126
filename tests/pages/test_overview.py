"""A workspace of another format."""

from __future__ import annotations

from cdp.base.workspace import FORMAT_FILE, Workspace, write_json
from tests.pages.conftest import Open


def test_a_workspace_of_another_format_is_refused_on_every_page(open_page: Open, filled: Workspace) -> None:
    write_json(filled.root / FORMAT_FILE, {"format": 99})
    at = open_page("home")
    assert any("Use the version that wrote it" in box.value for box in at.error)
    assert not at.metric
