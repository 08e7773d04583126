"""The server's console stays quiet: no page in any state warns or fails there; a damaged file alone is named."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from cdp.ui.shell.navigation import PAGES
from tests.browser.conftest import Looker, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

GREETING = re.compile(r"You can now view your Streamlit app|^\s*(Local |Network |External )?URL: ")


@pytest.mark.parametrize("state", ["empty", "full", "damaged"])
def test_no_page_writes_to_the_console(
    state: str, serve: Callable[..., Server], look: Callable[..., Looker], request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue("full_server") if state == "full" else serve()
    if state == "damaged":
        folder = server.workspace.corpora / "broken-00000000"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{ not json", encoding="utf-8")
    tab = look(server)
    for name, page in PAGES.items():
        tab.open("" if name == "overview" else name).see(page.question)
        assert tab.page.get_by_test_id("stException").count() == 0, name
        assert tab.page.get_by_test_id("stMain").inner_text().startswith(page.title), name
        tab.shot(f"{name}-{state}")
    said = [line for line in server.console().splitlines() if line.strip() and not GREETING.search(line)]
    if state == "damaged":  # the damaged file is named, and nothing else is said
        assert said
        said = [line for line in said if "broken-00000000" not in line]
    assert said == []
