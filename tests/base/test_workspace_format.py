"""A workspace of another format is refused in one sentence and left unchanged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdp.base.errors import WorkspaceError
from cdp.base.workspace import (
    FORMAT,
    FORMAT_FILE,
    Workspace,
    numbered_jsonl,
    read_json,
    read_json_or_none,
    sha256_file,
)
from cdp.cli import main


@pytest.mark.parametrize("text", ['{"format": 99}', '{"format": 0}', '{"format": "1"}', '{"format": true}', "{}", "[]"])
def test_a_workspace_of_another_format_is_refused_and_unchanged(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    workspace.root.mkdir(parents=True)
    (workspace.root / FORMAT_FILE).write_text(text, encoding="utf-8")
    source = tmp_path / "documents.jsonl"
    source.write_text('{"_id": "1", "text": "a text"}\n', encoding="utf-8")
    for command in (["corpus", "add", str(source)], ["jobs", "list"]):
        assert main(command) == 2
        shown = capsys.readouterr()
        assert "has format" in shown.err
        assert shown.err.count("\n") == 1
    assert [path.name for path in workspace.root.iterdir()] == [FORMAT_FILE]


def test_an_empty_mark_is_refused_and_a_workspace_without_one_gets_it(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["jobs", "list"]) == 0
    assert not workspace.root.exists()
    workspace.root.mkdir(parents=True)
    assert main(["jobs", "list"]) == 0
    assert json.loads((workspace.root / FORMAT_FILE).read_text()) == {"format": FORMAT}
    (workspace.root / FORMAT_FILE).write_text("")
    assert main(["jobs", "list"]) == 2
    assert FORMAT_FILE in capsys.readouterr().err


@pytest.mark.parametrize("read", [read_json, sha256_file, lambda path: list(numbered_jsonl(path)), read_json_or_none])
def test_a_pipe_in_a_workspace_is_not_waited_for(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    """Archives hold pipes too, and each page reads such files."""
    pipe = tmp_path / "catalog.json"
    os.mkfifo(pipe)
    if read is read_json_or_none:
        assert read(pipe) is None
        return
    with pytest.raises((WorkspaceError, OSError), match="pipe or a device"):
        read(pipe)
