"""A page of the dashboard under AppTest, at its address."""

from __future__ import annotations

from collections.abc import Mapping

from streamlit.testing.v1 import AppTest

from cdp.ui.shell.frame import PAGES
from tests.support import REPOSITORY


def opened(name: str, query: Mapping[str, str | list[str]], *, within_s: float = 30) -> AppTest:
    """The page (``queries``, or with its tab ``queries/review``) after one run; asserts that nothing went wrong."""
    at = AppTest.from_file(str(REPOSITORY / "app.py"), default_timeout=within_s)
    page, _, tab = name.partition("/")
    if page != "home":
        at.switch_page(PAGES[page].path)
    if tab:
        at.query_params["tab"] = tab
    for key, value in query.items():
        at.query_params[key] = value
    at.run()
    assert not at.exception, at.exception[0].message
    return at
