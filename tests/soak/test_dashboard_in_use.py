"""Two hours of use by ten browsers (``CDP_SOAK_MINUTES``), then thirty sessions at once on Compare and a live job.

What is asserted: no page shows a fault, nothing is written to the console that should not be, all jobs end, no process
or zombie stays, and memory, handles and threads of the server are flat over the second half. The figures are printed,
and written to ``$CDP_SOAK_REPORT/dashboard.json``.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Error, TimeoutError

from cdp import jobs
from cdp.base.config import SynthesisConfig
from cdp.base.workspace import Workspace
from cdp.services import corpora
from cdp.services import jobs as job_service
from cdp.ui.shell.frame import PAGES
from tests.browser.conftest import Looker, Server, browser, serve  # noqa: F401  (fixtures)
from tests.jobs.support import start, until
from tests.services.support import evaluation
from tests.soak.load import run
from tests.soak.watch import Watch, trends
from tests.support import stop_search

pytestmark = [pytest.mark.soak, pytest.mark.browser]

SESSIONS = 10
# What a visitor does, and how often one thing against another.
ACTS = {
    "page": 8, "reload": 3, "upload": 1, "preview": 2, "generate": 1, "train": 0.3, "stop": 1, "back": 2,
    "new browser": 1,
}  # fmt: skip

AT_ONCE = 30
EVERY_S = 5.0
# People read before they click: without a pause, what is measured is a queue of clicks. At most, in seconds.
PAUSE_S = float(os.environ.get("CDP_SOAK_PAUSE_S", "2"))


class Visitor:
    """One of the ten: does what people do, one thing at a time, in a browser context of its own."""

    def __init__(self, chromium: Browser, server: Server, number: int, folder: Path, rng: random.Random) -> None:
        self.browser, self.server, self.number, self.folder, self.rng = chromium, server, number, folder, rng
        self.workspace = server.workspace
        self.context = self.browser.new_context()
        self.tab = Looker(self.context.new_page(), server.url).open()
        self.uploaded = 0

    def act(self, tried: Counter[str]) -> str:
        """Do one thing, counted among those that were ``tried``; its name."""
        what = self.rng.choices(list(ACTS), list(ACTS.values()))[0]
        tried[what] += 1
        getattr(self, f"_{what.replace(' ', '_')}")()
        return what

    def _page(self) -> None:
        self.tab.menu(self.rng.choice([page.title for page in PAGES.values()]))

    def _reload(self) -> None:
        self.tab.page.reload()
        self.tab.idle()

    def _back(self) -> None:
        self.tab.page.go_back()
        self.tab.page.wait_for_selector("h1", timeout=60_000)

    def _new_browser(self) -> None:
        self.context.close()
        self.context = self.browser.new_context()
        self.tab = Looker(self.context.new_page(), self.server.url).open()

    def _upload(self) -> None:
        self.uploaded += 1
        path = self.folder / f"upload-{self.number}-{self.uploaded}.jsonl"
        lines = [{"_id": f"d{i}", "text": f"visitor {self.number} text {self.uploaded} {i}"} for i in range(300)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        self.tab.open("documents").page.get_by_text("Add another corpus").click()
        self.tab.upload(path).press("Import documents").see("was added")
        path.unlink()

    def _preview(self) -> None:
        self.tab.open("queries")

    def _generate(self) -> None:
        corpus = self.rng.choice(corpora.list_corpora(self.workspace))
        config = {"corpus": corpus.id, "generator": "template", "per_doc": 3}
        job_service.start(self.workspace, "synthesis", SynthesisConfig.from_dict(config))

    def _train(self) -> None:
        start(self.workspace, steps=200, step_s=0.05, name=f"visitor {self.number}")

    def _stop(self) -> None:
        active = job_service.list_active(self.workspace)
        if active:
            job_service.stop(self.workspace, self.rng.choice(active).id)


def results(workspace: Workspace) -> None:
    """Enough on Compare to have something to do."""
    rng = random.Random(0)
    for benchmark in ("scifact", "nfcorpus", "demo"):
        for retriever in range(8):
            scores = {f"q{i}": rng.random() for i in range(300)}
            evaluation(workspace, f"retriever-{retriever}", benchmark, scores)


def test_hours_of_use(
    serve: Callable[..., Server],  # noqa: F811
    browser: Browser,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    minutes = float(os.environ.get("CDP_SOAK_MINUTES", "120"))
    monkeypatch.setenv("CDP_STOP_GRACE_S", "5")
    workspace = Workspace(tmp_path / "soak")
    server = serve(workspace=workspace, with_demo=True)
    results(workspace)
    rng = random.Random(int(os.environ.get("CDP_SOAK_SEED", "0")))
    watch = Watch(server._process.pid, EVERY_S)
    tried: Counter[str] = Counter()
    done: Counter[str] = Counter()
    problems: list[str] = []
    slow: list[str] = []
    visitors = [Visitor(browser, server, number, tmp_path, rng) for number in range(SESSIONS)]
    ends = time.monotonic() + 60 * minutes
    while time.monotonic() < ends:
        visitor = rng.choice(visitors)
        time.sleep(rng.uniform(0.0, PAUSE_S))
        try:
            done[visitor.act(tried)] += 1
            for text in visitor.tab.page.get_by_text("Something went wrong on this page").all_inner_texts():
                problems.append(f"a page shows: {text}")
        except TimeoutError as error:
            slow.append(f"visitor {visitor.number}: {str(error).splitlines()[0]}")
            visitor._new_browser()
        except Error as error:
            problems.append(f"visitor {visitor.number}: {str(error).splitlines()[0]}")
            visitor._new_browser()
    at_end = watch.look()
    in_use = list(watch.samples)

    live = start(workspace, steps=100_000, step_s=0.05, name="live")
    pages = [("compare", ""), ("jobs", f"job={live}")]
    process = psutil.Process(server._process.pid)
    before = sum(process.cpu_times()[:2])
    load = run(server.url, pages, sessions=AT_ONCE, seconds=min(60.0 * minutes / 4, 300.0))
    cpu_s = sum(process.cpu_times()[:2]) - before
    runs = sum(len(values) for values in load.seconds.values())
    jobs.stop(workspace, live)
    for visitor in visitors:
        visitor.context.close()
    until(lambda: not jobs.list_active(workspace), "all jobs to end", 300)
    stop_search(workspace)  # it waits for further queries; a page may have asked it
    time.sleep(3)
    last = watch.look()
    watch.end()

    found = trends(in_use)
    report = {
        "minutes": minutes, "done": done, "problems": problems, "slow": slow, "samples": len(in_use),
        "trends": [{**asdict(one), "flat": one.flat} for one in found],
        "zombies": max(sample.zombies for sample in watch.samples), "at_end": asdict(at_end), "last": asdict(last),
        "at_once": {"sessions": AT_ONCE, "pages": load.to_dict(), "cpu_s_per_run": round(cpu_s / max(1, runs), 3),
                    "errors": load.errors[:20]},
        "jobs": Counter(str(job.state) for job in jobs.list_jobs(workspace)),
    }  # fmt: skip
    text = json.dumps(report, indent=2)
    print(text)
    Path(os.environ.get("CDP_SOAK_REPORT", str(tmp_path))).joinpath("dashboard.json").write_text(text, encoding="utf-8")
    assert problems == []
    assert {what for what, n in tried.items() if n > 2} <= set(done), "something that visitors do never worked"
    assert len(slow) <= max(3, done.total() // 50), "pages took longer than a minute: is the machine busy?"
    assert load.errors == []
    assert "Traceback" not in server.console(), server.console()[-3000:]
    assert [one for one in found if not one.flat] == []
    assert (last.processes, last.zombies) == (0, 0)
    assert {str(job.state) for job in jobs.list_jobs(workspace)} <= {"finished", "stopped"}
    assert not list((workspace.root / "queue").glob("*.json"))
