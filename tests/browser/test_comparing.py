"""The Compare page under the hand: a figure is saved for a paper."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from cdp.base.workspace import Workspace
from cdp.services import queries
from tests.browser.conftest import Looker, Server, serve_for_reading
from tests.pages.support import evaluated, trained

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BENCHMARKS = ("demo", "hotpotqa_sample", "scifact")


def three_retrievers(workspace: Workspace) -> None:
    """An untrained and two trained retrievers on three benchmarks; the last lacks one."""
    chance = random.Random(0)
    sets = [q.id for q in queries.list_query_sets(workspace)]
    trained(workspace, "training-1-diverse", sets[0], name="on diverse", epochs=3)
    trained(workspace, "training-2-paraphrase", sets[1], name="on paraphrase", epochs=5)
    means = {"static-minilm": 0.4, "training-1-diverse": 0.6, "training-2-paraphrase": 0.45}
    names = {"static-minilm": "Static MiniLM", "training-1-diverse": "on diverse"}
    for i, (retriever, mean) in enumerate(means.items()):
        for benchmark in BENCHMARKS[: 3 - i // 2]:
            scores = [min(1.0, max(0.0, chance.gauss(mean, 0.25))) for _ in range(80)]
            job = f"evaluation-{i}-{benchmark}"
            evaluated(
                workspace, job, retriever, scores, name=names.get(retriever, "on paraphrase"), benchmark=benchmark
            )


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo with three retrievers to compare."""
    yield from serve_for_reading(tmp_path_factory.mktemp("compared"), three_retrievers)


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


def test_a_figure_is_saved_as_it_stands_in_the_export(compared: Server, look: Callable[..., Looker]) -> None:
    tab = look(compared, dark=True).open("compare?baseline=static-minilm").see("Means cover the benchmarks")
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
        assert download.value.suggested_filename == f"ndcg.{form.lower()}"
    opened(tab)
    with tab.page.expect_download() as download:
        popover.get_by_role("button", name="Download data (CSV)").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("series,x,y")
    assert len(lines) == 1 + 2 + 2 + 2
