"""Two versions of the app on one workspace: the newer brings it forward, the older refuses it in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base import versions
from cdp.base.errors import WorkspaceError
from cdp.base.versions import FILE, open_workspace
from cdp.base.workspace import Workspace
from cdp.cli.commands import main


def marked(workspace: Workspace, text: str) -> Workspace:
    workspace.root.mkdir(parents=True, exist_ok=True)
    (workspace.root / FILE).write_text(text, encoding="utf-8")
    return workspace


def test_an_older_app_refuses_a_newer_workspace_and_changes_nothing(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marked(workspace, '{"format": 99}')
    source = tmp_path / "documents.jsonl"
    source.write_text('{"_id": "1", "text": "a text"}\n', encoding="utf-8")
    for command in (["corpus", "list"], ["corpus", "add", str(source)], ["jobs", "list"], ["catalog", "rebuild"]):
        assert main(command) == 2
        shown = capsys.readouterr()
        assert "format 99" in shown.err
        assert "newer version" in shown.err
        assert shown.err.count("\n") == 1
    assert [path.name for path in workspace.root.iterdir()] == [FILE]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "1"}', '{"format": 0}', '{"format": true}', "\x00"])
def test_a_mark_that_says_nothing_is_refused_too(workspace: Workspace, text: str) -> None:
    with pytest.raises(WorkspaceError, match=FILE):
        open_workspace(marked(workspace, text))


def test_nothing_is_made_where_there_is_no_workspace(workspace: Workspace) -> None:
    assert open_workspace(workspace) == workspace
    assert not workspace.root.exists()


def test_a_workspace_without_a_mark_is_of_format_one_and_gets_it(workspace: Workspace) -> None:
    workspace.root.mkdir()
    open_workspace(workspace)
    assert json.loads((workspace.root / FILE).read_text())["format"] == 1


def test_an_older_workspace_is_brought_forward_step_by_step(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From each earlier format; a step that is cut off is taken again, and those before it are not."""
    taken: list[str] = []
    fails = [True]

    def first(found: Workspace) -> None:
        taken.append("first")

    def second(found: Workspace) -> None:
        taken.append("second")
        if fails.pop(0) if fails else False:
            raise WorkspaceError("the disk is full")

    monkeypatch.setattr(versions, "STEPS", (first, second))
    marked(workspace, '{"format": 1}')
    with pytest.raises(WorkspaceError, match="full"):
        open_workspace(workspace)
    assert versions.format_of(workspace) == 2
    open_workspace(workspace)
    assert (taken, versions.format_of(workspace)) == (["first", "second", "second"], 3)
    open_workspace(workspace)
    assert len(taken) == 3
    open_workspace(marked(workspace, '{"format": 2}'))
    assert taken == ["first", "second", "second", "second"]
