"""Where a worker starts, which is where Python imports from first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cdp.base.workspace import Workspace
from cdp.jobs.launchers import starting_folder
from cdp.jobs.records import JobSpec


def test_no_worker_starts_where_an_archive_may_have_brought_files(workspace: Workspace, tmp_path: Path) -> None:
    folder = workspace.job("train-1")
    (folder / "cdp").mkdir(parents=True)
    spec = JobSpec(
        id="train-1", kind="train", name="", module="cdp.workers.training", config={}, created="", sequence=1
    )
    for within in (folder, folder / "cdp", workspace.jobs):
        assert starting_folder(replace(spec, cwd=str(within)), folder) is None
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert starting_folder(replace(spec, cwd=str(link)), folder) is None
    assert starting_folder(replace(spec, cwd=str(tmp_path)), folder) == str(tmp_path)
    assert starting_folder(replace(spec, cwd=str(tmp_path / "gone")), folder) is None
    assert starting_folder(spec, folder) is None
