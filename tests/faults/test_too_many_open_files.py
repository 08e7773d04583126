"""The limit of open files is reached at any moment: a sentence, never a wrong state, and nothing half-made."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdp import catalog, jobs
from cdp.base.errors import CdpError
from cdp.base.staging import staging
from cdp.base.workspace import Workspace
from cdp.services import corpora
from tests.catalog.support import add_evaluation
from tests.jobs.support import start, until_state, until_step

pytestmark = pytest.mark.slow


@contextmanager
def spare_descriptors(n: int) -> Iterator[None]:
    """Only so many more files can be opened in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    try:
        while held[-1:] != [highest] and len(held) < 1000:  # no gaps below the limit
            held.append(os.open("/dev/null", os.O_RDONLY))
            if held[-1] > highest:
                os.close(held.pop())
                break
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + n, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)


def test_a_running_job_is_never_shown_as_lost(workspace: Workspace) -> None:
    job_id = start(workspace, steps=1000, hold_at=2)
    until_step(workspace, job_id, 2)
    jobs.view(workspace, job_id)
    seen = set()
    for n in range(8):
        for look in (lambda: [jobs.view(workspace, job_id, with_size=False)], lambda: jobs.list_jobs(workspace)):
            with spare_descriptors(n):
                try:
                    seen |= {str(job.state) for job in look()}
                except CdpError:
                    seen.add("told")
    jobs.stop(workspace, job_id)
    until_state(workspace, job_id, "stopped")
    assert seen == {"told", "running"}


def _add(workspace: Workspace, source: Path) -> None:
    corpora.add(workspace, source, name="rivers")


def _read(workspace: Workspace, source: Path) -> None:
    assert [row["id"] for row in catalog.evaluations(workspace)] == ["evaluate-1"]


def _submit(workspace: Workspace, source: Path) -> None:
    jobs.wait(workspace, start(workspace, steps=1))


@pytest.mark.parametrize("act", [_add, _read, _submit])
def test_what_cannot_be_done_is_told_and_leaves_nothing(
    workspace: Workspace, tmp_path: Path, act: Callable[[Workspace, Path], None]
) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    source = tmp_path / "documents.jsonl"
    source.write_text('{"_id": "a", "text": "one document"}\n', encoding="utf-8")
    first = Workspace(tmp_path / "first")
    add_evaluation(first, "evaluate-1", "a")
    act(first, source)  # what is imported at first use is there now
    before = {path.name for path in workspace.jobs.iterdir()}
    told = 0
    for n in (*range(10), 40, 60):
        with spare_descriptors(n):
            try:
                act(workspace, source)
            except CdpError:
                told += 1
        if told <= n:
            break
    assert told > 0
    assert corpora.list_corpora(workspace) == [] or act is _add
    assert {job.id for job in jobs.list_jobs(workspace)} >= before - {path for path in before if path.startswith(".")}
    act(workspace, source)
    assert not list(workspace.jobs.glob(".*")), "no half-made job is left"


def test_what_could_not_be_cleared_away_goes_with_the_next_import(tmp_path: Path) -> None:
    one = staging(tmp_path)
    folder = one.__enter__()
    (folder / "half").mkdir()
    (folder / "half" / "made").write_text("x", encoding="utf-8")
    with spare_descriptors(0):
        one.__exit__(None, None, None)
    assert folder.exists(), "no folder can be read without a descriptor"
    with staging(tmp_path) as other:
        assert [path for path in tmp_path.iterdir() if path.is_dir()] == [other]
    assert list(tmp_path.iterdir()) == []
