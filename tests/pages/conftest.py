"""The dashboard under AppTest, in an empty workspace and in one that holds the demo."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.results import board
from cdp.services import access, queries
from tests.pages.opening import opened
from tests.pages.support import ended_job, with_results
from tests.support import work

Open = Callable[..., AppTest]


@pytest.fixture
def open_page(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open a page of the dashboard: ``open_page("documents", corpus="demo-1")``; asserts that nothing went wrong.

    The test's own folder is allowed, as the operator of a server allows some.
    """
    monkeypatch.setenv("CDP_ALLOWED_FOLDERS", str(workspace.root.parent))
    monkeypatch.setattr(access, "_typed_keys", {})  # of a dashboard that was started again

    def at(name: str, **query: str | list[str]) -> AppTest:
        return opened(name, query)

    return at


@pytest.fixture(scope="session")
def _demo(demo_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("demo") / "workspace"
    shutil.copytree(demo_root, root)
    board.list_evaluations(Workspace(root))  # the catalogue is copied with the rest
    return root


@pytest.fixture
def filled(workspace: Workspace, _demo: Path) -> Workspace:
    """The workspace with the demo collection, its query sets and its benchmark."""
    shutil.copytree(_demo, workspace.root)
    assert os.environ["CDP_WORKSPACE"] == str(workspace.root)
    return workspace


@pytest.fixture(scope="session")
def _full(_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    root = tmp_path_factory.mktemp("full") / "workspace"
    shutil.copytree(_demo, root)
    workspace = Workspace(root)
    with_results(workspace, queries.list_query_sets(workspace)[0].id)
    return workspace


@pytest.fixture
def full(_full: Workspace, open_page: Open, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The demo with two trained retrievers and their results, for tests that change nothing: one catalog for all."""
    monkeypatch.setenv("CDP_WORKSPACE", str(_full.root))
    return _full


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Jobs that pages start are written down; the function that this gives does them in this process, and returns their
    ids. That a supervisor starts a worker is tested with the jobs; here it costs seconds for each of them."""
    waiting: list[tuple[str, Path, dict[str, str]]] = []

    def submit(workspace: Workspace, *, kind: str, name: str, module: str, config: dict[str, Any], **rest: Any) -> str:
        folder = ended_job(workspace, f"{kind}-{len(list(workspace.jobs.glob('*'))) + 1}", kind, config, name=name)
        spec = read_json(folder / "spec.json")
        write_json(folder / "spec.json", {**spec, "module": module, "inputs": dict(rest.get("inputs") or {})})
        waiting.append((module, folder, dict(rest.get("env_secrets") or {})))
        return folder.name

    def finish() -> list[str]:
        done = []
        while waiting:
            module, folder, secrets = waiting.pop(0)
            with monkeypatch.context() as within:
                for key, value in secrets.items():
                    within.setenv(key, value)
                assert work(module, folder) == 0
            done.append(folder.name)
        return done

    monkeypatch.setattr(jobs, "submit", submit)
    return finish
