"""One click each saves a figure's numbers as CSV, and the figure as SVG and as PNG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Looker, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BEGINS = {"CSV": b"retriever,", "SVG": b"<svg", "PNG": b"\x89PNG"}


@pytest.mark.parametrize("form", BEGINS)
def test_one_click_saves_a_published_figure(
    form: str, demo_server: Server, look: Callable[..., Looker], tmp_path: Path
) -> None:
    tab = look(demo_server).open("evidence?tab=holds&figure=best")
    button = tab.page.get_by_role("button", name=form).first
    button.wait_for(timeout=60_000)
    tab.page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
    with tab.page.expect_download() as saved:
        button.click()
    saved.value.save_as(tmp_path / "saved")
    content = (tmp_path / "saved").read_bytes()
    assert content.startswith(BEGINS[form])
    if form == "SVG":
        assert b"Contriever" in content
