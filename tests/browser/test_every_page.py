"""Every page on real screens, in the states that a workspace may be in: it fits, its words can be read, nothing fails,
and the server's console stays quiet. Only a damaged file is named there."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from cdp.ui.shell.frame import PAGES
from tests.browser.conftest import Looker, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

GREETING = re.compile(r"You can now view your Streamlit app|^\s*(Local |Network |External )?URL: ")

# Of a word to what is behind it (WCAG 2.1, 1.4.3).
LEAST = 4.5

# Pages whose every word is looked at, in both themes.
READ = ("home", "queries", "decide", "launch", "jobs", "compare", "evidence")

FAINT_WORDS = """least => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const over = (top, alpha, below) => below.map((value, i) => top[i] * alpha + value * (1 - alpha));
  const light = colour => [0.2126, 0.7152, 0.0722].reduce((sum, share, i) => {
    const value = colour[i] / 255;
    return sum + share * (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  }, 0);
  const behind = element => {
    const layers = [];
    for (; element; element = element.parentElement) {
      const [r, g, b, alpha = 1] = parts(getComputedStyle(element).backgroundColor);
      if (alpha > 0) layers.push([[r, g, b], alpha]);
      if (alpha === 1) break;
    }
    return layers.reverse().reduce((below, [top, alpha]) => over(top, alpha, below), [255, 255, 255]);
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const words = texts.currentNode.textContent.trim(), element = texts.currentNode.parentElement;
    if (!words || !element.checkVisibility() || element.closest('svg, style, script, [data-testid=stSlider]')) continue;
    const ground = behind(element);
    let [r, g, b, alpha = 1] = parts(getComputedStyle(element).color);
    for (let e = element; e; e = e.parentElement) alpha *= Number(getComputedStyle(e).opacity);
    const [one, other] = [light(over([r, g, b], alpha, ground)), light(ground)];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < least) found.push(`${words.slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  return found;
}"""


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


def saves_figures(tab: Looker) -> None:
    """A figure is saved for a paper as it stands in the export of Compare."""
    popover = tab.page.get_by_test_id("stPopoverBody")
    opened(tab)
    with tab.page.expect_download() as download:
        popover.locator(".modebar-btn[data-title='Download plot']").first.click()
    assert download.value.path().read_bytes().startswith(b"<svg")
    assert download.value.suggested_filename == "gains.svg"
    # Plotly's message about the figure fades over whichever page comes next: its words would be read there.
    expect(tab.page.locator(".notifier-note")).to_have_count(0, timeout=15_000)


@pytest.mark.parametrize(
    ("state", "width", "dark"),
    [
        ("full", 1440, False),
        *(
            pytest.param(*screen, marks=pytest.mark.soak)
            for screen in (("demo", 390, True), ("full", 1280, True), ("empty", 1280, False), ("damaged", 1280, True))
        ),
    ],
)
def test_every_page(
    state: str,
    width: int,
    dark: bool,
    serve: Callable[..., Server],
    look: Callable[..., Looker],
    request: pytest.FixtureRequest,
) -> None:
    """By its address on the phone and where all is there in the dark, else from the menu."""
    server: Server = request.getfixturevalue(f"{state}_server") if state in ("full", "demo") else serve()
    if state == "damaged":
        folder = server.workspace.corpora / "broken-00000000"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{ not json", encoding="utf-8")
    tab = look(server, width=width, height=844, dark=dark)
    for name, page in PAGES.items():
        path = f"{'' if name == 'home' else name}?project=all"
        if (state, name) == ("full", "compare"):
            tab.open(f"{path}&baseline=static-minilm")
        elif name == "home" or width < 600 or (state, dark) == ("full", True):
            tab.open(path)
        else:
            tab.menu(page.title)
        tab.see(page.question).shot(f"{name}-{state}-{width}-{'dark' if dark else 'light'}")
        main = tab.page.get_by_test_id("stMain")
        assert tab.page.get_by_test_id("stException").count() == 0, name
        assert main.inner_text().startswith(page.title), name
        wide, shown = main.evaluate("main => [main.scrollWidth, main.clientWidth]")
        assert wide <= shown + 1, f"{name} scrolls sideways at {width} pixels"
        if name in READ:
            assert tab.page.evaluate(FAINT_WORDS, LEAST) == [], name
        if (state, dark, name) == ("full", False, "compare"):
            saves_figures(tab)
    written = [line for line in server.console().splitlines() if line.strip() and not GREETING.search(line)]
    if state == "damaged":  # the damaged file is named, and nothing else is said
        assert written
        written = [line for line in written if "broken-00000000" not in line]
    assert written == []
