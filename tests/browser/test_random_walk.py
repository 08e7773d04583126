"""A walk of random steps over the pages, in two tabs: what a page shows is always what its address names.

Every thing is called by a word of its own and says it wherever it is shown, so that one thing's name over another's
figures is seen at once. A few steps in ``make test``, 500 in ``make soak`` (``CDP_SOAK_STEPS``, ``CDP_SOAK_SEED``).
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from cdp.base.workspace import Workspace
from cdp.results.board import list_evaluations
from cdp.services import benchmarks, corpora, jobs, projects, queries
from cdp.ui.shell.frame import PAGES
from tests.browser.conftest import LOAD_MS, Looker, Server
from tests.pages.support import evaluated, trained

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Each project, with its corpus, query set, benchmark and jobs, is called so, and has so many documents.
SIZES = {"alder": 3, "birch": 5, "cedar": 8}

# Select boxes by their label, and the part of the address that names what is chosen there.
SELECTS = {
    "Project": "project",
    "Corpus": "corpus",
    "Job": "job",
    "Baseline": "baseline",
    "Benchmark": "entry",
    "Query set": "target_set",
    "Human queries": "human",
    "Table": "table",
}

# How long a list of options is waited for that may have closed.
CLOSED_MS = 5000

MOVES = {"menu": 6, "pick": 6, "back": 4, "forward": 1, "reload": 2, "earlier address": 2, "other tab": 2}


@pytest.fixture
def filled(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path / "w")
    for name, n in SIZES.items():
        folder = tmp_path / name
        (folder / "qrels").mkdir(parents=True)
        rows = [{"_id": f"{name}{i}", "title": "", "text": f"Mill {i} of {name} grinds corn."} for i in range(n)]
        asked = [{"_id": f"q{i}", "text": f"which mill number {i} belongs to {name}"} for i in range(n)]
        for file, lines in (("corpus", rows), ("queries", asked)):
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (folder / f"{file}.jsonl").write_text(text, encoding="utf-8")
        judged = "".join(f"q{i}\t{name}{i}\t1\n" for i in range(n))
        (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
        corpus = corpora.add(workspace, folder / "corpus.jsonl", name=name).corpus.id
        lines = [{"document_id": f"{name}{i}", "text": f"where does mill {i} of {name} stand"} for i in range(n)]
        asked_file = tmp_path / f"{name}.jsonl"
        asked_file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        query_set = queries.import_file(workspace, asked_file, corpus=corpus, name=f"{name} questions").query_set.id
        benchmarks.add(workspace, folder)
        projects.create(workspace, f"{name} project", corpora=[corpus], benchmarks=[name])
        trained(workspace, f"training-{name}", query_set, name=f"{name} training")
        scores = [0.1 * SIZES[name]] * n
        evaluated(workspace, f"evaluation-{name}", f"training-{name}", scores, name=f"{name} training", benchmark=name)
        evaluated(workspace, f"evaluation-{name}-0", "static-minilm", [0.05] * n, benchmark=name)
    return workspace


class Walk:
    """Two tabs on one server, and what is true of the things that they show."""

    def __init__(self, workspace: Workspace, tabs: list[Looker], seed: int) -> None:
        self.draw = random.Random(seed)
        self.tabs = tabs
        self.tab = tabs[0]
        self.trail: list[str] = []
        self.addresses: list[str] = []
        self.missed = 0
        self.compared = 0
        self.index = projects.Index(workspace)
        sets = {query_set.id: query_set.name for query_set in queries.list_query_sets(workspace)}
        self.names = {
            "project": {project.id: project.name for project in projects.list_projects(workspace)},
            "corpus": {corpus.id: corpus.name for corpus in corpora.list_corpora(workspace)},
            "job": {job.id: job.name for job in jobs.list_jobs(workspace)},
            "baseline": {row["retriever_id"]: row["retriever_name"] for row in list_evaluations(workspace)},
            "target_set": sets,
            "human": sets,
        }

    def step(self) -> None:
        move = self.draw.choices(list(MOVES), list(MOVES.values()))[0]
        page = self.tab.page
        page.mouse.move(1270, 5)  # away from a tooltip that would lie over what is clicked
        if move == "menu":
            links = page.get_by_test_id("stSidebar").get_by_role("link")
            link = links.nth(self.draw.randrange(links.count()))
            move = f"menu: {link.inner_text()}"
            link.click()
        elif move == "pick":
            boxes = [label for label in SELECTS if self.shown(label) is not None]
            if not boxes:
                return
            label = self.draw.choice(boxes)
            page.locator(f"input[aria-label='{label}']").first.click()
            options = page.get_by_role("option")
            try:
                options.first.wait_for(timeout=CLOSED_MS)
                option = options.nth(self.draw.randrange(options.count() or 1))
                move = f"{label}: {option.inner_text(timeout=CLOSED_MS)}"
                option.click(timeout=CLOSED_MS)
            except PlaywrightTimeout:  # the page was drawn anew under the click: the list has closed again
                self.missed += 1
                return
        elif move == "back":
            page.go_back()
        elif move == "forward":
            page.go_forward()
        elif move == "reload":
            page.reload()
        elif move == "earlier address" and self.addresses:
            page.goto(self.draw.choice(self.addresses))
        elif move == "other tab":
            self.tab = next(tab for tab in self.tabs if tab is not self.tab)
        self.trail.append(move)
        if not self.tab.page.url.startswith(self.tab.base):  # back, past the first page of all
            self.tab.open()
        self.settle()

    def settle(self) -> None:
        """Wait for the page; what is chosen can make it run once more."""
        self.tab.page.wait_for_selector("h1", timeout=LOAD_MS)
        for _ in range(2):
            self.tab.idle()
            self.tab.page.wait_for_timeout(150)

    def shown(self, label: str) -> str | None:
        """What a select box of this name shows, None without one that is to be seen."""
        box = self.tab.page.locator(f"input[aria-label='{label}']")
        return box.first.input_value() if box.count() and box.first.is_visible() else None

    def check(self) -> None:
        """The page against its address: its title, each choice, and the figures and texts of what is chosen."""
        page = self.tab.page
        parts = urlsplit(page.url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        where = f"{page.url} after {self.trail[-8:]}"
        assert page.get_by_test_id("stException").count() == 0, where
        name = parts.path.strip("/") or "home"
        heading = page.get_by_test_id("stMain").get_by_role("heading", level=1).first.inner_text()
        assert PAGES[name].title in heading, where
        for label, param in SELECTS.items():
            shown, known = self.shown(label), self.names.get(param, {})
            if shown is not None and query.get(param) in known:
                assert shown.startswith(known[query[param]]), f"{label} is {shown}: {where}"
                self.compared += 1
        project, corpus = self.shown("Project"), self.shown("Corpus")
        words = page.get_by_test_id("stMain").inner_text()
        for other in SIZES:
            if corpus and corpus != other:
                assert f"of {other} grinds" not in words, f"a document of {other} under {corpus}: {where}"
            if corpus and project in self.names["project"].values():
                assert corpus in str(project), f"{corpus} in {project}: {where}"
        if name == "documents" and corpus:
            metric = page.get_by_test_id("stMetric").filter(has_text="Documents")
            figure = metric.get_by_test_id("stMetricValue").inner_text()
            assert figure == str(SIZES[corpus]), f"{corpus} has {figure}: {where}"
        job = self.shown("Job")
        if name == "jobs" and job:
            title = page.get_by_test_id("stMain").get_by_role("heading", level=4).first.inner_text()
            assert job.startswith(title), f"{job} over {title}: {where}"
        self.addresses.append(page.url)


def wander(filled: Workspace, server: Server, look: Callable[..., Looker], steps: int, seed: int) -> None:
    tabs = [look(server), look(server)]
    walk = Walk(filled, [tab.open() for tab in tabs], seed)
    for _ in range(steps):
        walk.step()
        walk.check()
    assert walk.missed <= steps / 10
    assert walk.compared >= steps / 2, "a walk past pages that name nothing says little"


@pytest.mark.soak
def test_a_short_walk(filled: Workspace, serve: Callable[..., Server], look: Callable[..., Looker]) -> None:
    wander(filled, serve(workspace=filled), look, 5, seed=1)


@pytest.mark.soak
def test_a_long_walk(filled: Workspace, serve: Callable[..., Server], look: Callable[..., Looker]) -> None:
    steps, seed = int(os.environ.get("CDP_SOAK_STEPS", "500")), int(os.environ.get("CDP_SOAK_SEED", "0"))
    wander(filled, serve(workspace=filled), look, steps, seed)
