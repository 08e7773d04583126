"""An address that names no page is told from one that does, and from what the server itself answers."""

from __future__ import annotations

import pytest

from cdp.ui.shell.addresses import unknown
from cdp.ui.shell.navigation import PAGES


@pytest.mark.parametrize("name", list(PAGES))
def test_pages_are_known(name: str) -> None:
    assert unknown(f"/{name}") == ""
    assert unknown(f"/{name}/") == ""
    assert unknown(f"/studio/{name}", "studio") == ""


@pytest.mark.parametrize(
    "path",
    ["/", "", "/_stcore/health", "/static/js/main.js", "/favicon.png", "/media/1", "/oauth2callback", "/healthz"],
)
def test_what_the_server_answers_is_left_alone(path: str) -> None:
    assert unknown(path) == ""


@pytest.mark.parametrize(
    ("path", "name"), [("/nothing", "nothing"), ("/pages/compare", "pages/compare"), ("/comparee", "comparee")]
)
def test_other_addresses_name_no_page(path: str, name: str) -> None:
    assert unknown(path) == name
    assert unknown(f"/studio{path}", "studio") == name
