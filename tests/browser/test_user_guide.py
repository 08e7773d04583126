"""The pictures of README.md and docs/USER_GUIDE.md, taken on the way through the five steps with the demo collection.

    make images        writes them to docs/images

It trains two retrievers, so it is left out of other runs: the way itself is walked by the other browser tests.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace
from cdp.services import jobs, queries, training
from cdp.ui.shell.frame import PAGES
from tests.browser.conftest import Looker, Server
from tests.support import REPOSITORY, stop_search

pytestmark = pytest.mark.slow

IMAGES = Path(os.environ.get("CDP_IMAGES") or REPOSITORY / "docs" / "images")
MAX_BYTES = 200_000
GUIDE = REPOSITORY / "docs" / "USER_GUIDE.md"
TAKEN = ("home", "documents", "queries", "review", "quality", "decide", "launch", "jobs", "compare", "search")


def picture(tab: Looker, name: str, *, height: int = 900) -> None:
    """The screen as it is, 1280 pixels wide."""
    tab.page.set_viewport_size({"width": 1280, "height": height})
    tab.page.mouse.move(0, 0)
    tab.idle().page.wait_for_timeout(1000)
    target = IMAGES / f"{name}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    tab.page.screenshot(path=str(target))
    assert target.stat().st_size < MAX_BYTES


# Width, height and darkness of the screens on which every page is shown at the end of the guide.
SCREENS = ((1440, 900, False), (1280, 900, True), (390, 844, False), (390, 844, True))


def sheet(width: int, dark: bool) -> str:
    return f"every-page-{width}-{'dark' if dark else 'light'}.jpg"


def every_page(server: Server, look: Callable[..., Looker], width: int, height: int, dark: bool) -> None:
    """One picture of all pages side by side, small: the first screen of each."""
    tab = look(server, width=width, height=height, dark=dark)
    taken = []
    for name, page in PAGES.items():
        tab.open("" if name == "home" else name).see(page.question).drawn()
        taken.append((page.title, base64.b64encode(tab.page.screenshot(type="jpeg", quality=80)).decode("ascii")))
    columns, shown = (4, 330) if width > 600 else (5, 230)
    cells = "".join(
        f"<figure><img width={shown} src='data:image/jpeg;base64,{data}'><figcaption>{title}</figcaption></figure>"
        for title, data in taken
    )
    style = (
        f"body{{margin:12px;display:grid;grid-template-columns:repeat({columns},{shown}px);gap:10px;"
        "font:13px sans-serif;background:#8a949c}figure{margin:0}figcaption{color:#fff;padding:2px}"
    )
    tab.page.set_viewport_size({"width": columns * (shown + 10) + 14, "height": 600})
    tab.page.set_content(f"<style>{style}</style>{cells}")
    target = IMAGES / sheet(width, dark)
    tab.page.screenshot(path=str(target), full_page=True, type="jpeg", quality=70)
    assert target.stat().st_size < 2 * MAX_BYTES


def trained(workspace: Workspace) -> None:
    """Two retrievers, one on each kind of the demo's queries, evaluated before and after."""
    for kind in ("diverse", "paraphrase"):
        config = TrainingConfig.from_dict({"query_set": f"demo {kind}", "name": f"trained on {kind} queries"})
        started = training.start(workspace, config, benchmarks=[("demo", "test"), ("demo", "dev")])
        for job in (*started.later, started.job_id):
            assert jobs.wait(workspace, job).state == "finished"


@pytest.mark.browser
@pytest.mark.skipif(not os.environ.get("CDP_IMAGES"), reason="make images takes them")
def test_the_pictures_are_taken_on_the_way(serve: Callable[..., Server], look: Callable[..., Looker]) -> None:
    server = serve(with_demo=True)
    chosen = next(q for q in queries.list_query_sets(server.workspace) if q.method == "diverse")
    tab = look(server).open().see("Trained retrievers")
    picture(tab, "home")
    tab.open("documents").see("Median length")
    picture(tab, "documents")
    tab.open("queries?document=lighthouse").see("repeat each other less")
    picture(tab, "queries")
    tab.open(f"queries?tab=review&query_set={chosen.id}&document=lighthouse").see("are usable")
    picture(tab, "review", height=900)
    tab.open("queries?tab=quality").see("is the most diverse")
    picture(tab, "quality")
    tab.open("decide?target_benchmark=demo").see("Different queries or paraphrases?")
    picture(tab, "decide")
    tab.open(f"launch?query_set={chosen.id}&benchmarks=demo%2Ftest").see("What will happen")
    picture(tab, "launch")
    trained(server.workspace)
    job = next(v for v in jobs.list_jobs(server.workspace, kinds=["training"]))
    tab.open(f"jobs?job={job.id}").see("loss (InfoNCE)")
    picture(tab, "jobs", height=900)
    tab.open("compare?benchmark=demo&baseline=static-minilm").see("points on demo")
    picture(tab, "compare", height=1180)
    tab.open(f"search?q=lighthouse+lenses&search_with=bm25&search_with=static-minilm&search_with={job.id}").see(" ms")
    picture(tab, "search")
    for screen in SCREENS:
        every_page(server, look, *screen)
    stop_search(server.workspace)
    assert "Traceback" not in server.console()


def test_the_guide_shows_every_picture_and_no_other() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for name in TAKEN:
        assert f"(images/{name}.png)" in text
        assert (GUIDE.parent / "images" / f"{name}.png").stat().st_size < MAX_BYTES
    sheets = {sheet(width, dark) for width, _, dark in SCREENS}
    for name in sheets:
        assert f"(images/{name})" in text
    kept = {path.name for path in (GUIDE.parent / "images").iterdir()}
    assert kept == {f"{name}.png" for name in TAKEN} | sheets
