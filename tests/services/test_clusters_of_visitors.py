"""Whom jobs may be given to from a dashboard: the operator's clusters, and no address that a stranger types."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.jobs import place
from cdp.services import access, clusters
from cdp.services import jobs as service
from cdp.services.access import NotAllowedError, ReadOnlyError
from tests.jobs.support import start, until_state

STRANGE = "http://strange:8265"
OWN = "http://own:8265"


@pytest.fixture
def named(workspace: Workspace) -> Workspace:
    place.set_for_workspace(workspace, OWN)
    return workspace


def test_the_operator_and_a_dashboard_on_the_operators_machine_take_any(named: Workspace) -> None:
    for _ in range(2):
        with clusters.chosen(named, STRANGE):
            assert place.current(named) == STRANGE
        access.in_dashboard()


def test_others_take_the_workspaces_own(named: Workspace) -> None:
    access.in_dashboard(shared=True)
    for address in (OWN, "HTTP://Own:8265/"):
        with clusters.chosen(named, address):
            assert place.current(named) == address.lower().rstrip("/")
    with clusters.chosen(named, "here"):
        assert place.current(named) == ""
    for service_call in (clusters.look, clusters.use):
        with pytest.raises(NotAllowedError, match="may not be given to the cluster"):
            service_call(named, STRANGE)
    with pytest.raises(NotAllowedError, match="make it the workspace's own"), clusters.chosen(named, STRANGE):
        pytest.fail("it was chosen")
    assert place.current(named) == OWN


@pytest.mark.parametrize("address", [f"{OWN}.evil.example:8265", "http://own:8266", "https://own:8265", "http://own"])
def test_an_address_that_only_looks_named(named: Workspace, address: str) -> None:
    access.in_dashboard(shared=True)
    with pytest.raises(CdpError), clusters.chosen(named, address):
        pytest.fail("it was chosen")


def test_a_read_only_dashboard_chooses_none(named: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    access.in_dashboard()
    monkeypatch.setenv(access.READ_ONLY, "1")
    with pytest.raises(ReadOnlyError):
        clusters.use(named, OWN)
    with pytest.raises(NotAllowedError), clusters.chosen(named, OWN):
        pytest.fail("it was chosen")


@pytest.mark.slow
def test_a_resume_does_not_follow_a_strangers_job_to_its_cluster(
    named: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace may come from a stranger: it may say that its job ran on a cluster of the stranger's."""
    monkeypatch.setitem(service.KINDS, "test", ("tests.jobs.workers.fail", None))
    with jobs.choosing(""):
        job_id = start(named, "fail", how="data")
    until_state(named, job_id, "failed")
    path = named.job(job_id) / "status.json"
    write_json(path, {**read_json(path), "cluster": STRANGE})
    with pytest.raises(NotAllowedError, match=f"jobs resume {job_id} --on {STRANGE}"):  # whoever types it means it
        service.resume(named, job_id)
    access.in_dashboard(shared=True)
    with pytest.raises(NotAllowedError, match=STRANGE):
        service.resume(named, job_id)
    assert jobs.view(named, job_id).attempt == 1
    with clusters.chosen(named, "here"):
        service.resume(named, job_id)
    until_state(named, job_id, "failed")
