"""The Compare page, opened by a link that may be the first on its server: a figure is saved for a paper."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import Looker, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def opened(tab: Looker) -> None:
    """The first chart's export. Saving a figure closes it a moment later, so it counts once it is still open then."""
    popover, looks = tab.page.get_by_test_id("stPopoverBody"), 0
    for _ in range(60):
        tab.page.wait_for_timeout(500)
        looks = looks + 1 if popover.locator(".js-plotly-plot").is_visible() else 0
        if looks == 2:
            return
        if popover.count() == 0:
            tab.page.get_by_role("button", name="Export").first.click()
    raise AssertionError("the export did not open")


def test_a_figure_is_saved_as_it_stands_in_the_export(full_server: Server, look: Callable[..., Looker]) -> None:
    tab = look(full_server, dark=True).open("compare?project=all&baseline=static-minilm").see("Paired t-test over")
    popover = tab.page.get_by_test_id("stPopoverBody")
    for form, begins, says in (("SVG", b"<svg", "Download plot"), ("PNG", b"\x89PNG", "Download plot as a PNG")):
        opened(tab)
        popover.get_by_role("radio", name=form).click()
        tab.idle()
        button = popover.locator(f".modebar-btn[data-title='{says}']").first
        button.wait_for(state="visible")  # not the button of the form before, whose chart stays until it is drawn anew
        with tab.page.expect_download() as download:
            button.click()
        content = download.value.path().read_bytes()
        assert content.startswith(begins)
        assert download.value.suggested_filename == f"gains.{form.lower()}"
    opened(tab)
    with tab.page.expect_download() as download:
        popover.get_by_role("button", name="Download data (CSV)").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("series,x,y")
    assert len(lines) > 1
