"""A job that waits for another: it joins the queue when that one has ended well, and fails if it did not."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace
from tests.jobs.support import until_state


def submit(
    workspace: Workspace, name: str, worker: str = "count", after: list[str] | None = None, **config: object
) -> str:
    return jobs.submit(
        workspace, kind="test", name=name, module=f"tests.jobs.workers.{worker}", config=config, after=after or []
    )


@pytest.mark.slow
def test_it_starts_after_the_other_has_finished(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDP_CPU_SLOTS", "2")
    first = submit(workspace, "first", steps=20, hold_at=1)
    second = submit(workspace, "second", after=[first], steps=1)
    assert jobs.view(workspace, second).message == f"Starts after {first}."
    (workspace.job(first) / "go").touch()
    ended = until_state(workspace, second, "finished", "failed")
    before = jobs.view(workspace, first)
    assert (before.state, ended.state) == ("finished", "finished")
    assert before.ended <= ended.started


@pytest.mark.slow
def test_it_fails_if_the_other_fails(workspace: Workspace) -> None:
    first = submit(workspace, "first", worker="fail", how="bug")
    second = submit(workspace, "second", after=[first])
    ended = until_state(workspace, second, "finished", "failed")
    assert ended.failure is not None
    assert first in ended.failure["message"]


@pytest.mark.slow
def test_it_can_be_stopped_while_it_waits(workspace: Workspace) -> None:
    first = submit(workspace, "first", steps=100_000)
    second = submit(workspace, "second", after=[first])
    until_state(workspace, first, "running")
    assert jobs.stop(workspace, second)
    until_state(workspace, second, "stopped")
    jobs.stop(workspace, first)
    until_state(workspace, first, "stopped")
