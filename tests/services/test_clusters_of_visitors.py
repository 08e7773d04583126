"""Which cluster jobs go to: the one that the operator chose, and none that a visitor or a stranger's job names."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base import permission
from cdp.base.permission import NotAllowedError, ReadOnlyError
from cdp.base.settings import REQUIRED, Config, option
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.services import clusters
from cdp.services import jobs as service
from tests.jobs.support import declare, start, until_state


class Failing(Config):
    """Settings of a worker that fails."""

    how: str = option(REQUIRED, "How it fails.")


STRANGE = "http://strange:8265"


def test_visitors_choose_none(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    permission.in_dashboard(shared=True)
    for service_call in (clusters.look, clusters.use):
        with pytest.raises(NotAllowedError, match="choose the Ray cluster"):
            service_call(workspace, STRANGE)
    monkeypatch.setenv(permission.READ_ONLY, "1")
    with pytest.raises(ReadOnlyError):
        clusters.use(workspace, STRANGE)
    assert clusters.setting(workspace) == ""


@pytest.mark.usefixtures("jobs_here")
def test_a_resume_does_not_follow_a_strangers_job_to_its_cluster(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace may come from a stranger: it may say that its job ran on a cluster of the stranger's."""
    declare(monkeypatch, "test", "tests.jobs.workers.fail", Failing)
    job_id = start(workspace, "fail", how="data")
    until_state(workspace, job_id, "failed")
    for name in ("status.json", "spec.json"):
        path = workspace.job(job_id) / name
        write_json(path, {**read_json(path), "cluster": STRANGE})
    permission.in_dashboard(shared=True)
    service.resume(workspace, job_id)
    until_state(workspace, job_id, "failed")
    view = jobs.view(workspace, job_id)
    assert (view.attempt, view.cluster) == (2, "")
