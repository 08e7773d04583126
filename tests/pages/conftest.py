"""The dashboard under AppTest, in an empty workspace and in one that holds the demo."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from cdp.base.workspace import Workspace
from cdp.services import demo
from tests.pages.opening import opened

Open = Callable[..., AppTest]


@pytest.fixture
def open_page(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open a page of the dashboard: ``open_page("corpus", corpus="demo-1")``; asserts that nothing went wrong.

    The test's own folder is allowed, as the operator of a server allows some.
    """
    monkeypatch.setenv("CDP_ALLOWED_FOLDERS", str(workspace.root.parent))

    def at(name: str, **query: str | list[str]) -> AppTest:
        return opened(name, query)

    return at


@pytest.fixture(scope="session")
def _demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("demo") / "workspace"
    demo.load(Workspace(root))
    return root


@pytest.fixture
def filled(workspace: Workspace, _demo: Path) -> Workspace:
    """The workspace with the demo collection, its query sets and its benchmark."""
    shutil.copytree(_demo, workspace.root)
    assert os.environ["CDP_WORKSPACE"] == str(workspace.root)
    return workspace
