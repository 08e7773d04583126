"""Launch says where a job will run, and the job's page where it runs."""

from __future__ import annotations

from cdp import jobs
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.jobs import place
from cdp.ui.shell.tables import JOINER
from tests.pages.conftest import Open
from tests.pages.support import ended_job

OWN = "http://127.0.0.1:9"


def plain(text: str) -> str:
    """A text of a page without what keeps Markdown from reading it."""
    return text.replace("\\", "").replace(JOINER, "")


def test_a_cluster_is_named_and_nothing_begins_where_it_does_not_answer(open_page: Open, filled: Workspace) -> None:
    at = open_page("launch")
    assert any("Runs in the background." in plain(caption.value) for caption in at.caption)
    place.choose(filled, OWN)
    at.run()
    assert not at.exception
    assert any(f"Runs on the Ray cluster {OWN}." in plain(caption.value) for caption in at.caption)
    at.button(key="train_start").click().run()
    assert not at.exception
    (error,) = at.error
    told = plain(f"{error.proto.title} {error.value}")
    assert OWN in told or "pip install -r requirements-cluster.txt" in told
    assert not list(filled.jobs.glob("*"))


def test_a_jobs_page_says_where_it_runs(open_page: Open, filled: Workspace) -> None:
    job_id = "training-1"
    path = ended_job(filled, job_id, "training", {}, outcome="failed", failure={"message": "bad data", "kind": "data"})
    path = path / "status.json"
    write_json(path, {**read_json(path), "cluster": OWN})
    assert jobs.view(filled, job_id).cluster == OWN
    at = open_page("jobs", job=job_id)
    assert not at.exception
    assert any(f"on {OWN}" in plain(m.value) for m in at.markdown)
