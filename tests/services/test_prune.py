"""Pruning deletes only what can be made again."""

from __future__ import annotations

import io

import pytest

from cdp import catalog
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, write_json
from cdp.services import adding, doctor
from tests.catalog.support import add_evaluation, add_job


def files(workspace: Workspace) -> set[str]:
    """The visible files of the workspace, without the catalogue's."""
    paths = [path.relative_to(workspace.root) for path in workspace.root.rglob("*") if path.is_file()]
    return {str(p) for p in paths if not any(part.startswith((".", "catalog.")) for part in p.parts)}


@pytest.mark.slow
def test_prune_lists_then_deletes_and_keeps_what_counts(workspace: Workspace) -> None:
    add_evaluation(workspace, "evaluate-1", "a")
    for job, outcome in (("train-1", "finished"), ("train-2", "stopped")):
        add_job(workspace, job, "train")
        folder = workspace.job(job)
        write_json(folder / "status.json", {"state": "ended", "attempt": 1, "exit_code": 0})
        write_json(folder / "outcome.json", {"outcome": outcome, "attempt": 1})
        write_json(folder / "checkpoints" / "last.json", {"step": 3})
        write_json(folder / "model" / "config.json", {})
    write_json(workspace.embeddings / "key" / "manifest.json", {})
    write_json(workspace.llm_cache / "aa" / "answer.json", {"text": "an answer"})
    catalog.rebuild(workspace)
    before = files(workspace)
    shown = {row.what: row.paths for row in doctor.prunable(workspace)}
    assert files(workspace) == before
    assert shown["checkpoints"] == ("jobs/train-1/checkpoints",), "a stopped job resumes from its own"
    assert shown["embeddings"] == ("embeddings/key",)
    deleted = {row.what: row.paths for row in doctor.prune(workspace)}
    assert deleted == shown
    assert files(workspace) == {f for f in before if not f.startswith(("jobs/train-1/checkpoints/", "embeddings/"))}
    assert not any(row.paths for row in doctor.prunable(workspace))
    assert len(doctor.prune(workspace, ["llm_cache"])[0].paths) == 1
    assert not (workspace.llm_cache / "aa").exists()
    with pytest.raises(ConfigError, match="everything"):
        doctor.prune(workspace, ["everything"])


def test_an_upload_under_way_is_not_deleted(workspace: Workspace) -> None:
    with adding.received(workspace, [("a.txt", io.BytesIO(b"text"))]) as (path, _):
        doctor.prune(workspace, ["leftovers"])
        assert path.read_bytes() == b"text"
