"""How long until a page is drawn, in a real browser, over a workspace as large as one gets?

The workspace is that of ``perf.large_workspace``: a million documents, 500,000 queries, 300 jobs, 100,000 scores.
A page is drawn when its script has ended and everything it sent is on screen, charts included. Each is opened

* by its address in a new session, as a link does it, by a browser that has been here before (its cache is warm);
* by its address in a browser that has never been here (its cache is empty);
* from another page by the menu.

The goal is a median of 1.5 s, and with an empty cache 1.2 times the peer. The peer is a Streamlit page with one chart
and one table of three rows, opened by its address in turns with ours in the same browser, and in one that has never
been here: what Streamlit, Plotly and the browser cost anyway.

    python -m perf.pages [page …]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cdp.base.workspace import REPOSITORY
from cdp.ui.shell.frame import PAGES
from perf import large_workspace
from perf.startup import BROWSER, server
from perf.timing import Row, paired

GOAL_S, GOAL_EMPTY = 1.5, 1 / 1.2
REPEATS = 5
SCREEN: Any = {"width": 1280, "height": 900}
# What a page is asked for beyond its own choice.
QUERY = {"jobs": "job={running}", "corpus": f"corpus={large_workspace.CORPUS}"}

PLAIN = """
import plotly.graph_objects as go
import streamlit as st

st.title("plain")
st.plotly_chart(go.Figure(go.Bar(x=[1, 2, 3], y=[3, 1, 2])))
st.dataframe({"a": [1, 2, 3], "b": ["x", "y", "z"]})
"""

DRAWN = """
title => {
  const app = document.querySelector('[data-testid="stApp"]');
  const heading = document.querySelector('h1');
  if (!app || !heading || heading.innerText.trim() !== title) return false;
  if (app.getAttribute('data-test-script-state') !== 'notRunning') return false;
  if (document.querySelector('[data-testid="stSkeleton"]')) return false;
  if (document.querySelector('[data-stale="true"]')) return false;
  const charts = [...document.querySelectorAll('[data-testid="stPlotlyChart"]')];
  return charts.every(chart => chart.querySelector('.main-svg'));
}
"""


def run(names: list[str] | None = None) -> list[Row]:
    """Two rows per page, opened by its address with a warm and with an empty cache; the menu stands in the table."""
    from playwright.sync_api import sync_playwright

    workspace = large_workspace.build()
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        large_workspace.at_work(workspace) as running,
        sync_playwright() as playwright,
    ):
        script = Path(folder) / "plain.py"
        script.write_text(PLAIN, encoding="utf-8")

        with server(REPOSITORY / "app.py", workspace) as address, server(script, workspace) as plain:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=BROWSER)
            tab = browser.new_context(viewport=SCREEN).new_page()
            print(f"medians of {REPEATS} in seconds; the goal is {GOAL_S}")
            print(f"{'page':20} {'by address':>11} {'empty cache':>12} {'by the menu':>12} {'plain page':>11}")
            opened(tab, plain, "plain")

            for name, page in PAGES.items():
                if names and name not in names:
                    continue

                query = QUERY.get(name, "").format(running=running)
                place = f"{address}{'' if name == 'overview' else name}{f'?{query}' if query else ''}"
                opened(tab, place, page.title)

                ours, first, menu, peer, peers_first = [], [], [], [], []
                for _ in range(REPEATS):
                    peer.append(opened(tab, plain, "plain"))
                    ours.append(opened(tab, place, page.title))
                    menu.append(by_menu(tab, name))
                    first.append(by_newcomer(browser, place, page.title))
                    peers_first.append(by_newcomer(browser, plain, "plain"))

                mine, cold, clicked, theirs = (statistics.median(times) for times in (ours, first, menu, peer))
                print(f"{name:20} {mine:11.2f} {cold:12.2f} {clicked:12.2f} {theirs:11.2f}", flush=True)
                name = f"page {name} drawn{{}}, against a Streamlit page with one chart and one table"
                rows += [
                    paired(name.format(""), ours, peer, target=theirs / GOAL_S),
                    paired(name.format(", empty cache"), first, peers_first, target=GOAL_EMPTY),
                ]

            browser.close()

    return rows


def by_newcomer(browser: Any, address: str, title: str) -> float:
    """Seconds until the page is drawn in a browser that holds nothing of it yet."""
    context = browser.new_context(viewport=SCREEN)
    elapsed = opened(context.new_page(), address, title)
    context.close()
    return elapsed


def opened(tab: Any, address: str, title: str) -> float:
    """Seconds from asking for an address until the page is drawn."""
    tab.goto("about:blank")
    began = time.perf_counter()
    tab.goto(address, wait_until="commit")
    tab.wait_for_function(DRAWN, arg=title, polling=20, timeout=120_000)
    return time.perf_counter() - began


def by_menu(tab: Any, name: str) -> float:
    """Seconds from the click on a page's entry in the menu until it is drawn, coming from another page."""
    other = "evidence" if name != "evidence" else "overview"
    for target in (other, name):
        link = tab.locator('[data-testid="stSidebar"] a', has_text=PAGES[target].title).first
        began = time.perf_counter()
        link.evaluate("link => link.click()")
        tab.wait_for_function(DRAWN, arg=PAGES[target].title, polling=20, timeout=120_000)
    return time.perf_counter() - began


if __name__ == "__main__":
    from perf.timing import show

    show(run(sys.argv[1:]))
