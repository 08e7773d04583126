"""What takes long says so: the first visit to a large set shows how far its measuring is, then the measures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from cdp.base.workspace import Workspace
from cdp.services import corpora, jobs, queries
from cdp.services.corpora import ReadOptions
from tests.browser.conftest import Looker, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

N_DOCUMENTS, PER_DOC = 8000, 5


@pytest.mark.soak
def test_measuring_a_large_set_is_seen_and_its_end_draws_the_page(
    serve: Callable[..., Server], look: Callable[..., Looker], workspace: Workspace
) -> None:
    documents, asked = (workspace.root.parent / name for name in ("documents.jsonl", "asked.jsonl"))
    documents.write_text(
        "".join(json.dumps({"_id": f"d{n}", "text": f"A text about tide {n}."}) + "\n" for n in range(N_DOCUMENTS)),
        encoding="utf-8",
    )
    lines = (
        {"document_id": f"d{n}", "queries": [f"when does the tide {n} turn at harbour {i}" for i in range(PER_DOC)]}
        for n in range(N_DOCUMENTS)
    )
    asked.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    corpus = corpora.add(workspace, documents, name="tides", options=ReadOptions()).corpus
    large = queries.import_file(workspace, asked, corpus.id, name="asked").query_set
    for view in jobs.list_jobs(workspace, kinds=["measures"]):
        jobs.wait(workspace, view.id)
        jobs.delete(workspace, view.id)
    shutil.rmtree(workspace.query_set(large.id) / "measures")

    tab = look(serve(workspace=workspace)).open(f"queries?tab=quality&sets={large.id}")
    tab.see("Measuring").see("This continues if you leave the page")
    expect(tab.page.get_by_test_id("stMain").get_by_role("progressbar").first).to_be_visible()
    tab.shot("quality_diversity-measuring")
    tab.see("Content words per query", seconds=90)
    expect(tab.page.get_by_test_id("stMain").get_by_text("Measuring")).to_have_count(0)
    assert len(jobs.list_jobs(workspace, kinds=["measures"])) == 1
