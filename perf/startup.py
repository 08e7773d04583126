"""How long from starting the server to the first page drawn, in a real browser?

The peer is an empty Streamlit app on the same machine (one line of text, the same configuration): what Streamlit and
the browser cost anyway. The workspace holds the demo collection. The time runs from the start of the server's process
until the page's main heading is visible; the browser is open beforehand.

    python -m perf.startup
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cdp.base.workspace import REPOSITORY, Workspace
from cdp.services import demo
from perf.timing import Row, of_times, show

GOAL_S = 3.0
REPEATS = 3
EMPTY = 'import streamlit as st\n\nst.title("empty")\n'
BROWSER = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]


def run() -> list[Row]:
    """One row: seconds of ours and of the empty app, medians of interleaved starts."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        workspace = Workspace(Path(folder) / "workspace")
        demo.load(workspace)
        empty = Path(folder) / "empty.py"
        empty.write_text(EMPTY, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=BROWSER)
        ours, peer = [], []
        for _ in range(REPEATS):
            ours.append(first_page(browser, REPOSITORY / "app.py", workspace))
            peer.append(first_page(browser, empty, workspace))
        browser.close()
    print(f"ours {sorted(round(t, 2) for t in ours)} s, empty app {sorted(round(t, 2) for t in peer)} s")
    return [
        of_times("from server start to the first page drawn, against an empty Streamlit app", ours, peer, goal=GOAL_S)
    ]


def first_page(browser: Any, script: Path, workspace: Workspace) -> float:
    """Seconds from the start of a server to its first heading on screen."""
    page = browser.new_page()
    began = time.perf_counter()
    with server(script, workspace) as address:
        page.goto(address)
        page.locator("h1").first.wait_for(state="visible", timeout=60_000)
        elapsed = time.perf_counter() - began
        page.close()
    return elapsed


@contextlib.contextmanager
def server(script: Path, workspace: Workspace) -> Iterator[str]:
    """A Streamlit server on a free port; its address once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    process = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "CDP_WORKSPACE": str(workspace.root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.2):
                break
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    show(run())
