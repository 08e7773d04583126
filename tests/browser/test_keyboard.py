"""The main path by keyboard alone: the focus is always to be seen, nothing traps it, and the menu can be skipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cdp.services import corpora, jobs
from tests.browser.conftest import Looker, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MAX_STOPS = 120
CONTROLS = ("A", "BUTTON", "DIV", "INPUT", "SUMMARY", "TEXTAREA")

FOCUSED = """
() => {
  let here = document.activeElement;
  if (!here || here === document.body) return null;
  while (here.shadowRoot?.activeElement) here = here.shadowRoot.activeElement;  // of a component: its button
  let ring = false, border = '';
  for (let node = here, i = 0; node && i < 4; node = node.parentElement, i++) {
    const style = getComputedStyle(node);
    ring ||= style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    ring ||= style.boxShadow !== 'none';
    if (!border && parseFloat(style.borderTopWidth) > 0) border = style.borderTopColor;
  }
  return {
    tag: here.tagName,
    name: here.getAttribute('aria-label') || here.innerText || '',
    test: here.dataset.testid || '',
    ring, border,
  };
}
"""


def focused(tab: Looker) -> dict[str, Any] | None:
    """What has the focus: its tag, name, test id, whether a ring marks it, and the colour of its frame."""
    found: dict[str, Any] | None = tab.page.evaluate(FOCUSED)
    return found


def reach(tab: Looker, name: str, tag: str = "") -> Looker:
    """Press Tab until the focus is on what is called so."""
    for _ in range(MAX_STOPS):
        tab.page.keyboard.press("Tab")
        here = focused(tab)
        if here is not None and name in here["name"] and here["tag"] in ((tag,) if tag else CONTROLS):
            return tab
    raise AssertionError(f"{name} is not reached by Tab")


def on(tab: Looker, title: str) -> Looker:
    """Wait until the page with this heading is drawn."""
    tab.page.get_by_role("heading", level=1, name=title).wait_for(timeout=30_000)
    return tab.idle()


@pytest.mark.soak
def test_the_main_path_needs_no_mouse(serve: Callable[..., Server], look: Callable[..., Looker]) -> None:
    server = serve()
    tab = look(server).open().see("First the documents")
    key = tab.page.keyboard.press
    reach(tab, "More ways to add them", "A")
    key("Enter")
    on(tab, "Documents")
    reach(tab, "Load the demo collection", "BUTTON")
    key("Space")
    tab.see("The demo collection is loaded", seconds=60)
    assert corpora.list_corpora(server.workspace)

    tab.open("queries").see("repeat each other less")
    reach(tab, "Preview and write")
    key("ArrowRight")
    key("Enter")
    tab.see("are usable")

    reach(tab.open("decide?tab=complexity").see("Published rule:").drawn(), "Benchmark", "BUTTON")
    for press in ("ArrowRight", "ArrowRight", "Space"):  # of one group, by its arrows
        key(press)
    tab.see("No target queries yet")
    reach(tab, "Target queries, one per line", "TEXTAREA")
    tab.page.keyboard.type("which treaty ended the war that began the year the bridge opened")
    key("Control+Enter")
    tab.see("Published rule:")

    tab.open("launch").see("What will happen")
    reach(tab, "Start training", "BUTTON")
    key("Enter")
    on(tab, "Jobs").see("loss (InfoNCE)", seconds=120)
    assert [view.kind for view in jobs.list_jobs(server.workspace)].count("training") == 1


@pytest.mark.parametrize(
    "path", ["launch", *(pytest.param(path, marks=pytest.mark.soak) for path in ("", "queries", "decide"))]
)
def test_the_menu_can_be_skipped_and_the_focus_is_seen_and_never_trapped(
    path: str, full_server: Server, look: Callable[..., Looker]
) -> None:
    tab = look(full_server).open(f"{path}?project=all")
    tab.page.get_by_test_id("stMain").locator("button, input").first.wait_for()
    tab.drawn()
    tab.page.keyboard.press("Tab")
    first = focused(tab)
    assert first is not None
    assert first["name"] == "Skip to main content"
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.querySelector('[data-testid=stMain]').contains(document.activeElement)")
    unseen, stops = [], 0
    resting = tab.page.evaluate(
        "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).getPropertyValue('border-top-color')"
    )
    for _ in range(MAX_STOPS):
        tab.page.keyboard.press("Tab")
        here = focused(tab)
        if here is None:
            break
        stops += 1
        drawn = here["ring"] or (here["tag"] in ("INPUT", "TEXTAREA") and here["border"] not in ("", resting))
        # The main part takes the focus so that the arrow keys scroll it; a table draws its own focus on its canvas, and
        # hands it on to a cell of the hidden table that it keeps for screen readers.
        if not drawn and here["tag"] not in ("MAIN", "CANVAS") and not here["test"].startswith("glide-cell-"):
            unseen.append(here)
    assert here is None, "Tab never leaves the page"
    assert stops > 5
    assert unseen == []
