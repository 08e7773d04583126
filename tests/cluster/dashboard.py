"""The dashboard's pages in this process, with jobs on a real cluster."""

from __future__ import annotations

from typing import Any

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace
from cdp.jobs import JobView, Place
from tests.cluster.conftest import SmallCluster
from tests.jobs.support import until_state
from tests.pages.opening import opened

PATIENCE_S, PAGE_S = 400.0, 120.0


def launched(
    workspace: Workspace, cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch, what: str, query: dict[str, str],
    **fields: Any,
) -> list[JobView]:  # fmt: skip
    """The jobs that one press on Launch starts with a cluster chosen under "Run on", once all of them have finished
    there. ``what`` is the beginning of the form's keys, ``fields`` what is set in it."""
    monkeypatch.setenv("CDP_ALLOWED_CLUSTERS", cluster.address)
    before = {job.id for job in jobs.list_jobs(workspace)}
    at = opened("launch", query, within_s=PAGE_S)
    for name, value in fields.items():
        at.session_state[f"{what}_{name}"] = value
    at.selectbox(key=f"{what}_on").select(cluster.address).run()
    at.button(key=f"{what}_start").click().run()
    assert not at.exception, at.exception[0].message
    assert not at.error, at.error[0].value
    started = [job.id for job in jobs.list_jobs(workspace) if job.id not in before]
    done = [until_state(workspace, job_id, "finished", "failed", patience_s=PATIENCE_S) for job_id in started]
    for job in done:
        assert job.state == "finished", (job.failure, jobs.read_log(workspace, job.id))
        assert job.place == Place(cluster.address)
        assert job.host
    return done


def runs_in_compare() -> dict[str, float]:
    """NDCG@10 in percent of each run that Compare shows."""
    board = opened("compare", {"project": "all"}, within_s=PAGE_S).dataframe[0].value
    return dict(zip(board["Run"], board["NDCG@10"], strict=True))
