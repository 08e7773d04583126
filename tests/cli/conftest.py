"""The demo in a test's workspace, which is loaded once and copied: to load it takes 25 times as long."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.services import demo


@pytest.fixture(scope="session")
def _demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    loaded = Workspace(tmp_path_factory.mktemp("demo") / "workspace")
    demo.load(loaded)
    return loaded.root


@pytest.fixture
def with_demo(workspace: Workspace, _demo: Path) -> Workspace:
    """The test's own workspace with the demo in it."""
    shutil.copytree(_demo, workspace.root)
    return workspace
