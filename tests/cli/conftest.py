"""The demo in a test's workspace."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace


@pytest.fixture
def with_demo(workspace: Workspace, demo_root: Path) -> Workspace:
    """The test's own workspace with the demo in it."""
    shutil.copytree(demo_root, workspace.root)
    return workspace
