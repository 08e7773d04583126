"""A job that waits for another: it joins the queue when that one has ended well, and fails if it did not."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace
from tests.jobs.support import until_state
from tests.pages.support import ended_job

pytestmark = pytest.mark.slow


def submit(workspace: Workspace, name: str, after: list[str] | None = None, **config: object) -> str:
    return jobs.submit(
        workspace, kind="test", name=name, module="tests.jobs.workers.count", config=config, after=after or []
    )


def test_it_starts_after_the_other_has_finished(workspace: Workspace) -> None:
    first = submit(workspace, "first", steps=2, hold_at=1)
    second = submit(workspace, "second", after=[first], steps=1)
    third = submit(workspace, "third", after=[first])
    assert jobs.view(workspace, second).message == f"Starts after {first}."
    assert jobs.stop(workspace, third), "it can be stopped while it waits"
    until_state(workspace, third, "stopped")
    (workspace.job(first) / "go").touch()
    ended = until_state(workspace, second, "finished", "failed")
    before = jobs.view(workspace, first)
    assert (before.state, ended.state) == ("finished", "finished")
    assert before.ended <= ended.started


def test_it_fails_if_the_other_fails(workspace: Workspace) -> None:
    first = ended_job(workspace, "train-1", "training", {}, outcome="failed").name
    second = submit(workspace, "second", after=[first])
    ended = until_state(workspace, second, "finished", "failed")
    assert ended.failure is not None
    assert first in ended.failure["message"]
