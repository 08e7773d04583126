"""Every page in every mode of sharing: it is drawn, and offers nothing that the mode does not allow."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from pathlib import Path

import pytest
import streamlit as st

from cdp.base import permission
from cdp.base.permission import Mode
from cdp.base.workspace import Workspace
from cdp.services import queries
from cdp.ui.shell import forms
from tests.pages.conftest import Open
from tests.pages.support import with_results

# Made from the files whenever somebody looks, and made anew where it is gone; the last is the mark of the format, which
# the operator's server leaves on opening a workspace that has none.
DERIVED = (
    "catalog.duckdb", "catalog.json", "catalog.lock", "catalog.duckdb.wal", "measures", ".info", "workspace.json",
)  # fmt: skip

LEAD_ELSEWHERE = ("go_", "guide_", "next_", "to_")


# Pages on which a button that writes needs no form to be filled first.
WRITING = ("documents", "jobs")


def become(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    if mode is Mode.READ_ONLY:
        monkeypatch.setenv(permission.READ_ONLY, "1")
    permission.in_dashboard(shared=mode is Mode.SHARED)


def content(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash, what is derived left out."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not set(path.parts) & set(DERIVED)
    }


def test_a_shared_page_is_drawn_and_can_be_used(
    open_page: Open, filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever signed in may do the same, see ``test_table_of_modes``; alone, every other test of pages draws it."""
    become(Mode.SHARED, monkeypatch)
    at = open_page("documents")
    assert permission.mode() is Mode.SHARED
    assert not at.error
    assert not any("Read-only" in badge.value for badge in at.sidebar.markdown)


@pytest.mark.parametrize("name", ["documents", "queries/review", "benchmarks", "launch", "jobs"])
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
    keys = [button.key for button in at.button if button.key and not button.key.startswith(LEAD_ELSEWHERE)]
    for key in {re.sub(r"_[^_]+-\d+$", "", key): key for key in keys}.values():  # one of each query's buttons
        pressed = next((button for button in at.button if button.key == key), None)
        if pressed is not None:
            at = pressed.click().run()
            assert not at.exception, at.exception[0].message
            refused += bool(at.error)
    assert content(filled.root) == before
    assert refused or name not in WRITING, "a press reaches the service"


def test_a_query_set_is_downloaded(open_page: Open, filled: Workspace) -> None:
    first = queries.list_query_sets(filled)[0].id
    at = open_page("queries/review", query_set=first)
    at.segmented_control(key="export_format").set_value("flagembedding").run()
    assert not at.exception
    assert [b.label for b in at.get("download_button") if "export_download" in str(b.proto.id)] == ["Download"]
    permission.in_dashboard(shared=True)
    assert queries.download(filled, first, "flagembedding").startswith(b'{"query"')
    with zipfile.ZipFile(io.BytesIO(queries.download(filled, first, "beir"))) as packed:
        assert {"corpus.jsonl", "queries.jsonl", "qrels/train.tsv"} <= set(packed.namelist())
    assert not (filled.root / "exports").exists()
