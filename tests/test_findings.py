"""Each finding is a script of its own with pinned packages and one line in the table. They are run by hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support import REPOSITORY

FOLDER = REPOSITORY / "findings"
SCRIPTS = sorted(FOLDER.glob("*.sh"))


def test_the_table_names_every_script_once() -> None:
    named = re.findall(r"^\| \[(\w+)\]\((\w+)\.sh\)", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert named == [(path.stem, path.stem) for path in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_finding_stands_alone_with_exact_versions(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)
    assert "mktemp -d" in text
    assert "# Output seen:" in text
    installed = [word for line in re.findall(r"pip install (.*)", text) for word in line.split() if word[0] != "-"]
    assert installed
    assert [package for package in installed if "==" not in package] == []
    assert not re.search(r"^\s*(?:from|import) (?:cdp|perf|reproduction|tests)\b", text, re.MULTILINE)
