"""Fixtures for every test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cdp.workspace import Workspace

DRAWN_IN_QUICK_CHECKS = "test_in_an_empty_workspace"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """To draw pages takes as long as all else: the quick checks draw each page once, the rest is slow."""
    for item in items:
        if item.path.parent.name == "pages" and not item.name.startswith(DRAWN_IN_QUICK_CHECKS):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An empty workspace of the test's own, in use for child processes too."""
    root = tmp_path / "workspace"
    monkeypatch.setenv("CDP_WORKSPACE", str(root))
    return Workspace(root)


@pytest.fixture(autouse=True)
def main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page under AppTest becomes ``__main__``, which a process that a later test spawns would run again: put back."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
