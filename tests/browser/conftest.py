"""A real server on a free port with a workspace of its own, and chromium looking at it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Response, sync_playwright

from cdp.base.workspace import Workspace
from cdp.services import corpora, demo, jobs, projects, queries
from tests.conftest import RESTRICTIONS
from tests.pages.support import ended_job, evaluated, with_results
from tests.support import REPOSITORY, free_port

# Where pictures go with `CDP_SCREENSHOTS=1`. To draw a page at its whole height and to pack it as PNG takes the
# processor longer than the page does, so an unattended run takes none.
SCREENSHOTS = REPOSITORY / "test-artefacts"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A page is read once or twice: to optimise its scripts takes longer than to run them as they are.
    "--js-flags=--no-opt",
]


class Server:
    """The dashboard's server. ``secrets`` is the text of its secrets.toml, in which ``{url}`` is its own address."""

    def __init__(self, workspace: Workspace, log: Path, secrets: str = "") -> None:
        port = free_port()
        self.workspace = workspace
        self.url = f"http://127.0.0.1:{port}"
        self.log = log
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
        if secrets:
            log.with_suffix(".toml").write_text(secrets.format(url=self.url), encoding="utf-8")
            command += ["--secrets.files", str(log.with_suffix(".toml"))]
        self._file = open(log, "wb")  # noqa: SIM115  (open for as long as the server runs)
        self._process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**os.environ, "CDP_WORKSPACE": str(workspace.root)},
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
        )
        self._wait()

    def _wait(self) -> None:
        last = time.monotonic() + 60
        while time.monotonic() < last:
            try:
                urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2).close()
                return
            except OSError:
                assert self._process.poll() is None, self.log.read_text()
                time.sleep(0.1)
        raise AssertionError(f"no answer from the server:\n{self.log.read_text()}")

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._file.close()

    def console(self) -> str:
        """What the server wrote, warnings and tracebacks included."""
        return self.log.read_text(encoding="utf-8", errors="replace")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.skip("chromium is not installed: make chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield chromium
        chromium.close()


def end(server: Server) -> None:
    """Stop the server and the jobs it started."""
    for view in jobs.list_active(server.workspace):
        jobs.stop(server.workspace, view.id)
    server.stop()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start a server: ``serve()`` on an empty workspace, ``serve(with_demo=True)`` on one with the demo."""
    servers: list[Server] = []

    def started(*, with_demo: bool = False, workspace: Workspace | None = None, secrets: str = "") -> Server:
        used = workspace or Workspace(tmp_path / f"workspace-{len(servers)}")
        if with_demo:
            demo.load(used)
        servers.append(Server(used, tmp_path / f"server-{len(servers)}.log", secrets))
        return servers[-1]

    yield started
    for server in servers:
        end(server)


def serve_many(folder: Path, *fill: Callable[[Workspace], object]) -> Iterator[Server]:
    """A server for several tests: to start one takes longer than what most of them do there.

    No test has set its own environment yet when pytest makes a fixture of a wider scope; what the shell has set is
    taken away, as it is for each test.
    """
    workspace = Workspace(folder / "workspace")
    with pytest.MonkeyPatch.context() as environment:
        for name in RESTRICTIONS:
            environment.delenv(name, raising=False)
        for step in fill:
            step(workspace)
        server = Server(workspace, folder / "server.log")
    yield server
    end(server)


# A name that would show, were it taken for markup.
MARKUP = "<b id='evil'>bold</b> **strong** $x^2$ :red[hot] :material/home: <img src=x onerror=alert(1)>"
# Two projects, each with a corpus of so many documents.
MILLS = {"small": 3, "large": 7}


def _results(workspace: Workspace) -> None:
    """Trained retrievers with results, a job that failed, a corpus named in markup, two projects."""
    with_results(workspace, queries.list_query_sets(workspace)[0].id)
    for retriever, mean, missing in (
        ("static-minilm", 0.4, 0),
        ("training-1-diverse", 0.6, 0),
        ("training-2-other", 0.5, 1),
    ):
        for benchmark in ("hotpotqa_sample", "scifact")[missing:]:
            scores = [mean + 0.01 * (i % 20) for i in range(40)]
            evaluated(workspace, f"evaluation-{retriever}-{benchmark}", retriever, scores, benchmark=benchmark)
    failure = {"kind": "data", "message": "No pairs.", "hint": "Write queries.", "log_tail": "Traceback"}
    ended_job(workspace, "training-9-bad", "training", {"query_set": "q"}, outcome="failed", failure=failure)
    documents = {name: [f"Mill {i} of {name} grinds corn." for i in range(n)] for name, n in MILLS.items()}
    documents[MARKUP] = ["A text about tides, <script>alert(2)</script> and the Moon."]
    for name, texts in documents.items():
        path = workspace.root.parent / "documents.jsonl"
        rows = [{"_id": str(i), "title": name, "text": text} for i, text in enumerate(texts)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        corpus = corpora.add(workspace, path, name=name, options=corpora.ReadOptions()).corpus.id
        if name in MILLS:
            projects.create(workspace, f"mills {name}", corpora=[corpus])


@pytest.fixture(scope="session")
def demo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo, for tests that change nothing."""
    yield from serve_many(tmp_path_factory.mktemp("demo-server"), demo.load)


@pytest.fixture(scope="session")
def full_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo with results, a job that failed and further corpora, for tests that change nothing."""
    yield from serve_many(tmp_path_factory.mktemp("full-server"), demo.load, _results)


# Notes when the page last sent something to the server, and when the state of the script last changed.
OBSERVE = """
window.cdpSent = window.cdpChanged = 0;
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (...message) {
  window.cdpSent = performance.now();
  return send.apply(this, message);
};
new MutationObserver(() => { window.cdpChanged = performance.now(); }).observe(
  document, {subtree: true, attributeFilter: ['data-test-script-state']});
"""

# Whether the script has run, and has answered what was sent; not all that is sent makes it run.
IDLE = """
() => document.querySelector('[data-testid=stApp]')?.getAttribute('data-test-script-state') === 'notRunning'
  && (window.cdpChanged > window.cdpSent || !(performance.now() - window.cdpSent < 250))
"""

# What a click does comes to be sent: React handles it within a frame or two.
SETTLE_MS = 50
# How long a page may take to come. What is looked at is what it shows: on a machine with other work, 30 s were too few.
LOAD_MS = 120_000
# Playwright would ask at each frame, and have the browser draw all of them.
POLL_MS = 50

# Whether the script has run and every chart that is to be seen is drawn.
DRAWN = """
() => document.querySelector('[data-testid=stApp]')?.getAttribute('data-test-script-state') === 'notRunning'
  && !document.querySelector('[data-testid=stSkeleton]')
  && [...document.querySelectorAll('[data-testid=stPlotlyChart]')].every(
    chart => chart.querySelector('.main-svg') || !chart.checkVisibility())
"""

TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Looker:
    """One browser tab, with waits that know Streamlit."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.base = base
        self.presses = 0

    def open(self, path: str = "") -> Looker:
        self.page.goto(f"{self.base}/{path}")
        self.page.wait_for_selector("h1", timeout=LOAD_MS)
        return self.idle()

    def idle(self) -> Looker:
        """Wait until the script has run and what it drew is there."""
        self.page.wait_for_timeout(SETTLE_MS)
        self.page.wait_for_function(IDLE, timeout=LOAD_MS, polling=POLL_MS)
        return self

    def drawn(self) -> Looker:
        """Wait until what the script sent is on screen."""
        self.page.wait_for_function(DRAWN, timeout=LOAD_MS, polling=POLL_MS)
        self.page.evaluate(TWO_FRAMES)
        return self

    def upload(self, *paths: Path) -> Looker:
        """Choose files, and wait until the server has all of them."""
        box = self.page.get_by_test_id("stMain").get_by_test_id("stFileUploader").locator("input[type=file]")
        waiting = len(paths)

        def last(answer: Response) -> bool:
            nonlocal waiting
            waiting -= "/upload_file/" in answer.url
            return waiting == 0

        with self.page.expect_response(last):
            box.set_input_files(paths)
        self.see(paths[0].name)
        return self.idle()

    def see(self, text: str, *, seconds: float = 30) -> Looker:
        """Wait until ``text`` is visible in the page's main part."""
        main = self.page.get_by_test_id("stMain")
        main.get_by_text(text).first.wait_for(state="visible", timeout=seconds * 1000)
        return self

    def press(self, label: str, role: Literal["button", "link"] = "button") -> Looker:
        """Press a button or follow a link of the page; ``presses`` counts them."""
        self.presses += 1
        self.page.get_by_test_id("stMain").get_by_role(role, name=label).first.click()
        return self.idle()

    def unfold(self, label: str) -> Looker:
        """Open what is folded away under a title."""
        self.presses += 1
        self.page.get_by_test_id("stMain").get_by_test_id("stExpander").get_by_text(label, exact=True).click()
        return self.idle()

    def confirm(self, label: str) -> Looker:
        """Press a button in the popover that is open."""
        self.page.get_by_test_id("stPopoverBody").get_by_role("button", name=label).click()
        return self.idle()

    def chosen(self, label: str) -> str:
        """What a select box shows."""
        return self.page.locator(f"input[aria-label='{label}']").input_value()

    def menu(self, label: str) -> Looker:
        self.page.get_by_test_id("stSidebar").get_by_role("link", name=label, exact=True).click()
        self.page.get_by_role("heading", level=1, name=label).wait_for(timeout=30_000)
        return self.idle()

    def type(self, label: str, text: str) -> Looker:
        box = self.page.get_by_test_id("stMain").get_by_label(label, exact=True).first
        box.fill(text)
        box.press("Tab")
        return self.idle()

    def shot(self, name: str) -> Looker:
        """Wait until all of the page is drawn, charts too; with ``CDP_SCREENSHOTS=1``, keep a picture of it."""
        self.drawn()
        if not os.environ.get("CDP_SCREENSHOTS"):
            return self
        SCREENSHOTS.mkdir(exist_ok=True)
        width = (self.page.viewport_size or {"width": 1280})["width"]
        height = (self.page.viewport_size or {"height": 900})["height"]
        whole = int(self.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight"))
        self.page.set_viewport_size({"width": width, "height": max(height, min(whole + 20, 4000))})
        self.drawn()
        self.page.screenshot(path=str(SCREENSHOTS / f"{name}.png"))
        self.page.set_viewport_size({"width": width, "height": height})
        return self


def new_profile(browser: Browser) -> BrowserContext:
    profile = browser.new_context(reduced_motion="reduce")
    profile.add_init_script(OBSERVE)
    profile.set_default_navigation_timeout(LOAD_MS)
    return profile


@pytest.fixture(scope="session")
def _tab(browser: Browser) -> Page:
    """One tab for all tests: a new browser profile would fetch and compile the scripts of Streamlit and Plotly again,
    which takes longer than what most tests do on a page. ``look`` clears what a test left in it."""
    return new_profile(browser).new_page()


@pytest.fixture
def look(browser: Browser, _tab: Page) -> Iterator[Callable[..., Looker]]:
    """A tab on a server: ``look(server)``, with ``width``, ``height`` and ``dark`` where they matter; with
    ``stranger=True``, in a browser profile of its own. A second call gives a second tab."""
    strangers: list[BrowserContext] = []
    profile, unused = _tab.context, [_tab]

    def tab(
        server: Server, *, width: int = 1280, height: int = 900, dark: bool = False, stranger: bool = False
    ) -> Looker:
        if stranger:
            strangers.append(new_profile(browser))
            page = strangers[-1].new_page()
        else:
            page = unused.pop() if unused else profile.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        return Looker(page, server.url)

    yield tab
    for context in strangers:
        context.close()
    for page in profile.pages:
        if page.url.startswith("http"):
            page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        if page is _tab:
            page.goto("about:blank")
        else:
            page.close()
    profile.clear_cookies()
