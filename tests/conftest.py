"""Fixtures for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An empty workspace of the test's own, in use for child processes too."""
    root = tmp_path / "workspace"
    monkeypatch.setenv("CDP_WORKSPACE", str(root))
    return Workspace(root)
