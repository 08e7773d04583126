"""Every page in every mode of sharing: it is drawn, and offers nothing that the mode does not allow."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from cdp.base.workspace import Workspace
from cdp.services import access, queries
from cdp.services.access import Mode
from cdp.ui.shell import forms
from tests.pages.conftest import Open
from tests.pages.support import with_results

# Made from the files whenever somebody looks, and made anew where it is gone; the last is the mark of the format, which
# the operator's server leaves on opening a workspace that has none.
DERIVED = (
    "catalog.duckdb", "catalog.lock", "catalog.duckdb.wal", "measures", ".info", "workspace.json",
)  # fmt: skip

LEAD_ELSEWHERE = ("go_", "guide_", "next_", "to_")


# Pages on which a button that writes needs no form to be filled first.
WRITING = ("documents", "jobs")


def become(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    if mode is Mode.READ_ONLY:
        monkeypatch.setenv(access.READ_ONLY, "1")
    access.in_dashboard(shared=mode is Mode.SHARED)


def content(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash, what is derived left out."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not set(path.parts) & set(DERIVED)
    }


@pytest.mark.parametrize("name", ["documents", "launch", "jobs"])
def test_a_shared_page_is_drawn_and_can_be_used(
    name: str, open_page: Open, filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever signed in may do the same, see ``test_table_of_modes``; alone, every other test of pages draws it."""
    become(Mode.SHARED, monkeypatch)
    at = open_page(name)
    assert access.mode() is Mode.SHARED
    assert not at.error
    assert not any("Read-only" in badge.value for badge in at.sidebar.markdown)


@pytest.mark.parametrize("name", ["home", "documents", "queries", "queries/review", "benchmarks", "launch", "jobs"])
def test_whatever_is_pressed_on_a_read_only_page_changes_nothing(
    name: str, open_page: Open, filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every button is there to press, as for somebody who gets around its being disabled: the services refuse, and the
    page says so in a box."""
    monkeypatch.setattr(
        forms, "button", lambda label, disabled=False, help=None, **options: st.button(label, **options)
    )
    with_results(filled, queries.list_query_sets(filled)[0].id)
    become(Mode.READ_ONLY, monkeypatch)
    before = content(filled.root)
    query = {"job": "training-2-other"} if name == "jobs" else {}
    at = open_page(name, **query)
    refused = 0
    for key in [button.key for button in at.button if button.key and not button.key.startswith(LEAD_ELSEWHERE)]:
        pressed = next((button for button in at.button if button.key == key), None)
        if pressed is not None:
            at = pressed.click().run()
            assert not at.exception, at.exception[0].message
            refused += bool(at.error)
    assert content(filled.root) == before
    assert refused or name not in WRITING, "a press reaches the service"


def exporting(at: AppTest, query_set: str, target: Path) -> AppTest:
    at.segmented_control(key="export_format").set_value("flagembedding").run()
    return at.text_input(key=f"export_target_{query_set}_flagembedding").set_value(str(target)).run()


def offered(at: AppTest) -> list[str]:
    return [str(button.label) for button in at.get("download_button") if "export_download" in str(button.proto.id)]


def test_only_what_this_session_has_written_is_offered(
    open_page: Open, filled: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that exists on the server was once offered to whoever typed its name: the server's environment too."""
    first = queries.list_query_sets(filled)[0].id
    mine = filled.root / "exports" / "mine.jsonl"
    mine.parent.mkdir()
    mine.write_text("somebody else's\n")
    secret = tmp_path / "secret.txt"
    secret.write_text("CDP_API_KEY=sk-secret\n")
    at = open_page("queries/review", query_set=first)
    at.run()
    for target in (Path("/proc/self/environ"), secret, mine, filled.catalog):
        assert offered(exporting(at, first, target)) == []
    at = exporting(at, first, Path("/etc/new.jsonl"))
    at.button(key="export_write").click().run()
    assert offered(at) == []
    assert [box.icon for box in at.error] == [":material/error:"]
    own = mine.with_name("own.jsonl")
    at = exporting(at, first, own)
    at.button(key="export_write").click().run()
    assert not at.error
    assert offered(at) == ["Download"]
    assert own.read_text().startswith('{"query"')
    assert mine.read_text() == "somebody else's\n"
