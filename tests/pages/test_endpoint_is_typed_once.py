"""Address, model and key are typed once: they stand in every form, after a reload and in another tab; never on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base import permission
from cdp.base.workspace import Workspace, read_json
from cdp.services import access, endpoints
from tests.pages.conftest import Open

ADDRESS, MODEL, KEY = "http://127.0.0.1:9/v1", "writer-1", "sk-typed-once-0123456789"

FORMS = (("queries", "generate_generator"), ("benchmarks", "judge_generator"), ("decide", "generate_generator"))


@pytest.fixture(autouse=True)
def _no_key_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_typed_keys", {})


def on_disk(workspace: Workspace) -> str:
    files = (path for path in workspace.root.rglob("*") if path.is_file())
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in files)


@pytest.mark.slow
def test_what_one_form_was_told_stands_in_all_and_in_a_new_session(open_page: Open, filled: Workspace) -> None:
    at = open_page("queries")
    at.segmented_control(key="generate_generator").set_value("openai").run()
    at.text_input(key="generate_base_url").set_value(ADDRESS)
    at.text_input(key="generate_model").set_value(MODEL)
    at.text_input(key="generate_api_key").set_value(KEY).run()
    assert read_json(filled.root / endpoints.FILE) == {"generator": "openai", "base_url": ADDRESS, "model": MODEL}

    again = open_page("benchmarks", tab="judge")  # a session of its own, as a reload or a second tab is
    assert again.text_input(key="generate_base_url").value == ADDRESS
    assert again.text_input(key="generate_model").value == MODEL
    assert again.text_input(key="generate_api_key").placeholder == "typed before"
    assert access.endpoint_for({"generator": "openai", "base_url": ADDRESS}).key == KEY
    assert access.endpoint_for({"generator": "openai", "base_url": "http://127.0.0.1:8/v1"}).key != KEY
    assert KEY not in on_disk(filled)

    at.text_input(key="generate_model").set_value("writer-2").run()
    assert again.run().text_input(key="generate_model").value == "writer-2"


def test_an_address_with_a_key_in_it_is_not_kept(workspace: Workspace) -> None:
    endpoints.remember(workspace, "openai", "http://someone:secret@127.0.0.1:9/v1", MODEL)
    endpoints.remember(workspace, "openai", "no address", MODEL)
    assert not (workspace.root / endpoints.FILE).exists()


def test_visitors_of_a_shared_dashboard_share_neither_address_nor_key(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(permission, "_declared", permission.Mode.LOCAL)
    monkeypatch.setenv(permission.SHARED, "1")
    endpoints.remember(workspace, "openai", ADDRESS, MODEL)
    access.hold_key(ADDRESS, KEY)
    assert not (workspace.root / endpoints.FILE).exists()
    assert access.typed_key(ADDRESS) == ""
