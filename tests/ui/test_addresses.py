"""An address that names no page is told from one that does, and from what the server itself answers."""

from __future__ import annotations

import asyncio

import pytest

from cdp.ui.shell.frame import PAGES
from cdp.ui.shell.router import UnknownPages, unknown


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


def test_the_overview_by_name_leads_to_the_root() -> None:
    """Streamlit serves its first page at the root only, and called ``/overview`` a page that does not exist."""
    sent: list[dict[str, object]] = []

    async def serve(scope: object, receive: object, send: object) -> None:
        raise AssertionError("it was passed on")

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    scope = {
        "type": "http", "method": "GET", "path": "/overview", "query_string": b"corpus=demo-1",
        "headers": [(b"accept", b"text/html")],
    }  # fmt: skip
    asyncio.run(UnknownPages(serve)(scope, send, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 303
    assert (b"location", b"/?corpus=demo-1") in sent[0]["headers"]  # type: ignore[operator]
