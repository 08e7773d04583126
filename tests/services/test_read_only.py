"""A read-only dashboard: every service that writes refuses, and nothing else is touched by it."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from cdp.services import access, corpora, demo, jobs
from cdp.workspace import Workspace
from tests.support import REPOSITORY

SERVICES = REPOSITORY / "cdp" / "services"
VERBS = (
    "add",
    "delete",
    "generate",
    "import",
    "load",
    "rebuild",
    "received",
    "resume",
    "run",
    "start",
    "stop",
    "write",
)


def writing_services() -> list[tuple[str, str]]:
    """Every public service whose name begins with a verb that changes something."""
    found = []
    for path in sorted(SERVICES.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if (
                isinstance(node, ast.FunctionDef)
                and node.name.split("_")[0] in VERBS
                and node.args.args
                and node.args.args[0].arg == "workspace"
            ):
                found.append((path.stem, node.name))
    return found


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_dashboard", False)
    monkeypatch.setenv(access.VARIABLE, "1")
    access.in_dashboard()


def test_there_are_services_to_ask() -> None:
    assert {("corpora", "add"), ("training", "start"), ("jobs", "stop"), ("demo", "load")} <= set(writing_services())


@pytest.mark.parametrize(("module", "name"), writing_services())
def test_every_service_that_writes_refuses(module: str, name: str, dashboard: None, workspace: Workspace) -> None:
    service = getattr(importlib.import_module(f"cdp.services.{module}"), name)
    with pytest.raises(access.ReadOnlyError, match="read-only"):
        service(workspace)
    assert not workspace.root.exists()


def test_reading_goes_on(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    demo.load(workspace)
    monkeypatch.setattr(access, "_dashboard", True)
    monkeypatch.setenv(access.VARIABLE, "yes")
    assert [c.name for c in corpora.every(workspace)] == ["demo"]
    assert jobs.every(workspace) == []


@pytest.mark.slow
def test_other_processes_do_not_obey_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(access.VARIABLE, "1")
    monkeypatch.setenv("CDP_WORKSPACE", str(tmp_path / "workspace"))
    done = subprocess.run([sys.executable, "-m", "cdp", "demo"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(corpora.every(Workspace(tmp_path / "workspace"))) == 1
