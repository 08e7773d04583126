"""A query set too large to measure while a page is drawn is measured by a job; what writes a set measures it too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.base.config import SynthesisConfig
from cdp.base.workspace import Workspace
from cdp.metrics import query_table
from cdp.services import corpora, jobs, metrics, queries, review
from cdp.services.corpora import ReadOptions
from cdp.services.metrics import AT_ONCE
from cdp.services.queries import QuerySet
from tests.pages.conftest import Open

pytestmark = pytest.mark.slow

PER_DOC = 6
N_DOCUMENTS = AT_ONCE // PER_DOC + 1


@pytest.fixture(scope="module")
def _large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An imported set just too large to be measured at once; the job that its import started has ended."""
    folder = tmp_path_factory.mktemp("large")
    workspace = Workspace(folder / "workspace")
    source, asked = folder / "documents.jsonl", folder / "asked.jsonl"
    source.write_text(
        "".join(json.dumps({"_id": f"d{n}", "text": f"A text about tide {n}."}) + "\n" for n in range(N_DOCUMENTS)),
        encoding="utf-8",
    )
    corpus = corpora.add(workspace, source, name="tides", options=ReadOptions()).corpus
    asked.write_text(
        "".join(
            json.dumps({"document_id": f"d{n}", "query": f"when does tide {n} turn for the {i}th time"}) + "\n"
            for n in range(N_DOCUMENTS)
            for i in range(PER_DOC)
        ),
        encoding="utf-8",
    )
    assert queries.import_file(workspace, asked, corpus.id, name="asked").query_set.n_queries > AT_ONCE
    ended(workspace)
    return workspace.root


@pytest.fixture
def large(workspace: Workspace, _large: Path) -> QuerySet:
    """The set in a workspace of the test's own."""
    shutil.copytree(_large, workspace.root)
    return queries.show(workspace, "asked")


def ended(workspace: Workspace) -> None:
    """Wait for every job that measures."""
    for view in jobs.list_jobs(workspace, kinds=["measures"]):
        assert jobs.wait(workspace, view.id).state == "finished"


def shown(at: object) -> str:
    return " ".join(str(element.value) for element in (*at.markdown, *at.caption, *at.subheader))  # type: ignore[attr-defined]


def test_the_single_queries_are_read_by_the_same_job(workspace: Workspace, large: QuerySet, open_page: Open) -> None:
    table = review.table(workspace, large)
    assert table is not None
    assert len(table) == large.n_queries
    query_table.file_of(workspace, large).unlink()
    assert review.table(workspace, large) is None, "not while a page is drawn"
    assert "are not read yet" in shown(open_page("queries/quality", sets=[large.id]))


def test_the_import_measures_what_it_brought_in(workspace: Workspace, large: QuerySet, open_page: Open) -> None:
    assert len(jobs.list_jobs(workspace, kinds=["measures"])) == 1
    assert metrics.quick_at_once(workspace, large.id) == metrics.quick(workspace, large.id)
    at = open_page("queries/quality", sets=large.id)
    assert "Content words per query" in shown(at)
    assert "Measuring" not in shown(at)


def test_a_set_from_before_is_measured_while_the_page_says_so(
    workspace: Workspace, large: QuerySet, open_page: Open
) -> None:
    shutil.rmtree(workspace.query_set(large.id) / "measures")
    jobs.delete(workspace, jobs.list_jobs(workspace, kinds=["measures"])[0].id)
    at = open_page("queries/quality", sets=large.id)
    assert "Measuring 1 query set" in shown(at)
    assert "Content words per query" not in shown(at)
    at.run()
    assert len(jobs.list_jobs(workspace, kinds=["measures"])) == 1
    ended(workspace)
    at.run()
    assert "Content words per query" in shown(at)


def test_a_read_only_dashboard_says_how_to_have_it_measured(
    workspace: Workspace, large: QuerySet, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(workspace.query_set(large.id) / "measures")
    jobs.delete(workspace, jobs.list_jobs(workspace, kinds=["measures"])[0].id)
    monkeypatch.setenv("CDP_READ_ONLY", "1")
    at = open_page("queries/quality", sets=large.id)
    assert f"python -m cdp metrics {large.id} --quick" in shown(at)
    assert jobs.list_jobs(workspace, kinds=["measures"]) == []


def test_the_worker_that_writes_queries_measures_them(filled: Workspace, in_process: Callable[[], list[str]]) -> None:
    corpus = corpora.list_corpora(filled)[0].id
    job = queries.generate(filled, SynthesisConfig.from_dict({"corpus": corpus, "per_doc": 3, "name": "three"}))
    assert in_process() == [job]
    written = queries.show(filled, "three")
    kept = list((filled.query_set(written.id) / "measures").glob("*.json"))
    assert len(kept) == 1
    before = kept[0].stat().st_mtime_ns
    assert metrics.quick(filled, written.id).by_per_doc["self_bleu"][3] > 0
    assert kept[0].stat().st_mtime_ns == before
