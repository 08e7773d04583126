"""Launch, "An evaluation": any retriever on what is in the workspace, without doing anything twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.services import benchmarks, jobs
from tests.benchmarks.folders import write_benchmark
from tests.pages.conftest import Open
from tests.pages.test_every_page_in_every_state import words


def test_without_benchmarks_it_leads_to_them(open_page: Open, workspace: Workspace) -> None:
    at = open_page("launch", tab="evaluation")
    assert "No benchmarks yet" in words(at)
    assert at.button(key="to_benchmarks")


@pytest.mark.slow
def test_an_evaluation_is_started_once(
    open_page: Open, workspace: Workspace, tmp_path: Path, in_process: Callable[[], list[str]]
) -> None:
    benchmarks.add(workspace, write_benchmark(tmp_path / "small"))
    at = open_page("launch", tab="evaluation", judged="bm25", on=["small/test"])
    assert "small** · test will be evaluated" in words(at).replace("\\", "")
    at.session_state["command-evaluate"] = True
    at.run()
    assert [c.value for c in at.code] == ["python -m cdp evaluate bm25 --benchmark small --split test --wait"]
    at.button(key="evaluate_start").click().run()
    assert not at.exception
    assert at.title[0].value == "Jobs"
    (job,) = jobs.list_jobs(workspace)
    assert (job.kind, job.config["retriever"], job.config["benchmark"]) == ("evaluation", "bm25", "small")
    assert in_process() == [job.id]

    again = open_page("launch", tab="evaluation", judged="bm25", on=["small/test"])
    assert "already has a result with these settings" in words(again)
    assert "evaluate_start" not in [b.key for b in again.button]
    again.button(key="evaluate_compare").click().run()
    assert again.title[0].value == "Compare"
