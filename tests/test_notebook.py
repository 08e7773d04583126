"""The main path as objects: they make what the dashboard shows, errors are those of services, HTML is escaped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cdp import Workspace, jobs
from cdp.base.errors import CdpError
from cdp.notebook import DataTest, DocumentSet
from cdp.services import queries, studies
from tests.cli.support import answer
from tests.documents import notebook
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

TOPICS = (
    "glacier", "volcano", "harbour", "orchard", "bakery", "quarry", "violin", "canal", "windmill", "castle", "bridge",
    "tunnel", "vineyard", "garden", "museum", "market",
)  # fmt: skip
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("CDP_WORKSPACE", str(tmp_path / "workspace"))
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def docs(ws: Workspace, tmp_path: Path) -> DocumentSet:
    """Sixteen documents with a title of markup, without judged queries."""
    (tmp_path / "papers").mkdir()
    for number, topic in enumerate(TOPICS):
        text = (
            f"# {EVIL} {topic}\n\nThe {topic} was built in {1800 + number} by a guild. It lies beside the old road. "
            f"The {topic} burned down in {1850 + number} and was opened again in {1860 + number}.\n"
        )
        (tmp_path / "papers" / f"{topic}.md").write_text(text)
    return ws.add(tmp_path / "papers", name=f"few {EVIL}")


@pytest.mark.usefixtures("jobs_here")
def test_every_cell_of_the_notebook_runs_and_shows_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert notebook.run(REPOSITORY / "docs" / "library.ipynb") == []


def test_a_cell_that_shows_something_else_is_named(tmp_path: Path) -> None:
    path = tmp_path / "one.ipynb"
    outputs = [{"data": {"text/plain": ["3"]}}]
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["1 + 1"], "outputs": outputs}]}))
    assert notebook.run(path) == ["cell 0 shows\n2\nnot\n3"]
    notebook.run(path, write=True)
    assert notebook.run(path) == []


@pytest.mark.usefixtures("jobs_here")
def test_what_is_made_is_what_commands_and_pages_see(ws: Workspace, docs: DocumentSet, tmp_path: Path) -> None:
    written = docs.write("diverse", per_doc=2, name="mine")
    (listed,) = answer("queries", "list")
    assert (listed["id"], listed["name"], listed["n_queries"]) == (written.id, "mine", len(written))
    assert ws.queries("mine").id == written.id
    assert [q.id for q in ws.documents(docs.id).queries()] == [written.id]

    frame = written.to_pandas()
    assert (list(frame), len(frame)) == (["document_id", "query"], len(written))
    assert set(frame.document_id) <= set(docs.to_pandas().id)
    assert len(docs.to_pandas()) == len(docs) == 16
    assert list(written.metrics().measure) == ["Self-BLEU", "CW"]
    assert (written.cw().cw > 0).all()
    assert [path.suffix for path in written.export("sentence-transformers", tmp_path / "pairs.parquet")] == [".parquet"]

    previews = docs.preview(per_doc=2).to_pandas()
    assert set(previews.method) == {"diverse", "paraphrase"}
    assert answer("queries", "list") == [listed], "a preview stores nothing"


@pytest.mark.usefixtures("jobs_here")
def test_all_that_a_notebook_draws_is_escaped(ws: Workspace, docs: DocumentSet) -> None:
    written = docs.write("diverse", per_doc=2, name=f"mine {EVIL}")
    drawn = [docs, ws, written, docs.preview(), docs.decide(), docs.test(start=False), ws.job(written.job.id)]
    for thing in drawn:
        assert "<script" not in thing._repr_html_(), type(thing)
        assert repr(thing)
    assert EVIL.replace("<", "&lt;").replace(">", "&gt;") in ws._repr_html_()
    assert "<script" not in pd.DataFrame({"query": [EVIL]})._repr_html_()


@pytest.mark.usefixtures("jobs_here")
def test_errors_are_the_services_sentences(ws: Workspace, docs: DocumentSet) -> None:
    with pytest.raises(CdpError, match="No corpus is called 'nothing'"):
        ws.documents("nothing")
    with pytest.raises(CdpError, match="result"):
        ws.compare()
    same = docs.write("paraphrase", per_doc=1)
    with pytest.raises(CdpError, match="'epochs' must be at least 1"):
        same.train(epochs=0)
    with pytest.raises(CdpError, match="is named twice"):
        same.train(beside=[same])
    with pytest.raises(CdpError, match="colour"):
        docs.write("diverse", colour="red")
    assert all(query_set.complete for query_set in queries.list_query_sets(ws.folder))


def test_a_failed_job_raises_its_sentence_and_is_shown_in_the_place_of_what_it_makes(
    ws: Workspace, docs: DocumentSet, jobs_here: None
) -> None:
    unreachable = {"generator": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(CdpError, match="reach"):
        docs.write("diverse", per_doc=1, api_key="sk-typed-0123456789", **unreachable)
    (view,) = jobs.list_jobs(ws.folder, ["synthesis"])
    assert "failed" in repr(ws.job(view.id))
    assert not [p for p in view.folder.rglob("*") if p.is_file() and b"sk-typed" in p.read_bytes()]


def test_an_interrupt_ends_the_waiting_and_not_the_job(
    ws: Workspace, docs: DocumentSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdp.jobs._start_supervisor", lambda *_, **__: None)  # it stays in the queue
    pending = docs.write("diverse", per_doc=1, wait=False)
    assert pending.job is not None
    assert not pending.there
    assert f"id: {pending.job.id}" in repr(pending)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cdp.services.jobs.jobs.wait", interrupted)
    with pytest.raises(KeyboardInterrupt, match=rf"{pending.job.id} goes on .* Follow: ws\.job\(.*\)\.wait\(\) · stop"):
        pending.wait()
    assert not (ws.folder.job(pending.job.id) / "stop.request").exists()


def test_without_judged_queries_a_test_says_what_it_takes_and_starts_nothing(ws: Workspace, docs: DocumentSet) -> None:
    planned = docs.test()
    assert planned.jobs == []
    assert "There are no judged queries for these documents yet." in repr(planned)
    assert "docs.test(start=True)" in repr(planned)
    assert planned.answer.headline == docs.decide().headline
    assert studies.list_studies(ws.folder) == []
    assert not list(ws.folder.jobs.glob("*"))


def test_the_answer_of_a_test_is_about_its_own_queries(ws: Workspace) -> None:
    docs = ws.demo()
    planned = docs.test(start=False)
    assert planned.plan.judged.there
    begun = DataTest(docs, planned.plan, ["study-1"])
    assert begun.answer.headline == docs.decide(benchmark="demo:test").headline
    assert list(begun.answer.to_pandas()) == ["option", "ndcg@10", "to the choice", "price", "training"]


def test_progress_is_drawn_on_a_terminal_and_not_into_a_log(
    ws: Workspace, docs: DocumentSet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    jobs_here: None,
) -> None:  # fmt: skip
    docs.write("diverse", per_doc=1, name="silent")
    assert "%" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    docs.write("diverse", per_doc=2, name="drawn")
    assert "Writing queries: finished" in capsys.readouterr().err


def test_the_objects_are_imported_when_they_are_asked_for() -> None:
    code = "import sys, cdp; print('cdp.notebook' in sys.modules); cdp.Workspace; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert done.stdout.split() == ["False", "False"]
