"""Sharing results: buttons that write are disabled with the reason; sign-in stands before everything, where set up."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from cdp.base import permission
from cdp.base.workspace import Workspace
from cdp.services import corpora
from cdp.ui.shell.router import allowed
from tests.pages.conftest import Open
from tests.support import REPOSITORY

WRITING = {
    "documents": ("corpus_add", "corpus_demo"),
    "queries": ("generate_start",),
    "queries/quality": ("metrics_start",),
    "queries/review": ("round_trip_start", "filter_start"),
    "launch": ("train_start",),
    "jobs": ("delete_training-2-other",),
}


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(permission.READ_ONLY, "1")


@pytest.mark.parametrize("name", sorted({*WRITING, "compare"}))
def test_a_read_only_page_is_drawn_and_says_so(name: str, read_only: None, open_page: Open, full: Workspace) -> None:
    query = {"job": "training-2-other"} if name == "jobs" else {}
    at = open_page(name, **query)
    assert not at.error
    assert any("Read-only" in badge.value for badge in at.sidebar.markdown)
    buttons = {button.key: button for button in at.button}
    for key in WRITING.get(name, ()):
        assert buttons[key].disabled, key
        assert "read-only" in buttons[key].help


def test_what_gets_past_the_button_is_refused_in_one_box(
    open_page: Open, filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_page("documents")
    assert not at.button(key="corpus_add").disabled
    assert not any("Read-only" in badge.value for badge in at.sidebar.markdown)
    before = corpora.list_corpora(filled)
    monkeypatch.setenv(permission.READ_ONLY, "1")
    at.file_uploader(key="corpus_file").upload("tides.jsonl", b'{"_id": "a", "text": "The tide."}\n')
    at.button(key="corpus_add").click().run()
    assert not at.exception
    assert corpora.list_corpora(filled) == before


def test_where_sign_in_is_set_up_nothing_is_shown_before_it(workspace: Workspace) -> None:
    at = AppTest.from_file(str(REPOSITORY / "app.py"), default_timeout=30)
    at.secrets["auth"] = {
        "redirect_uri": "http://localhost:8501/oauth2callback",
        "cookie_secret": "not-a-secret",
        "client_id": "studio",
        "client_secret": "not-a-secret-either",
        "server_metadata_url": "http://localhost:9/.well-known/openid-configuration",
    }
    at.run()
    assert not at.exception
    assert "Home" not in [title.value for title in at.title]
    assert [button.label for button in at.button] == ["Sign in"]


@pytest.mark.parametrize(
    ("email", "verified", "people", "expected"),
    [
        ("ada@example.org", True, [], True),
        ("", False, [], True),
        ("ada@example.org", True, ["ada@example.org"], True),
        ("Ada@Example.org", True, ["ada@example.org"], True),
        ("eve@example.com", True, ["ada@example.org"], False),
        ("bob@example.org", True, ["@example.org"], True),
        ("bob@evil-example.org", True, ["@example.org"], False),
        ("bob@example.org@evil.org", True, ["@example.org"], False),
        ("ada@example.org", False, ["ada@example.org"], False),
        ("", True, ["@example.org"], False),
    ],
)
def test_who_may_look(email: str, verified: bool, people: list[str], expected: bool) -> None:
    assert allowed(email, verified, people) is expected
