"""Each finding is a script of its own with pinned packages and one line in the table. They are run by hand."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from findings.run import dependencies
from tests.support import REPOSITORY

FOLDER = REPOSITORY / "findings"
SCRIPTS = [path for path in sorted(FOLDER.glob("*.py")) if path.stem != "run"]


def test_the_table_names_every_script_once() -> None:
    named = re.findall(r"^\| \[(\w+)\]\((\w+)\.py\)", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert named == [(path.stem, path.stem) for path in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_finding_stands_alone_with_exact_versions(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert dependencies(script)
    assert [package for package in dependencies(script) if "==" not in package] == []
    tree = ast.parse(script.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not {module.partition(".")[0] for module in modules} & {"cdp", "perf", "reproduction", "tests"}
