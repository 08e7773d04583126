"""A read-only dashboard: every service that writes refuses, and nothing else is touched by it."""

from __future__ import annotations

import ast
import functools
import importlib

import pytest

from cdp.base import permission
from cdp.base.permission import Action
from cdp.base.workspace import Workspace
from cdp.services import corpora, jobs
from tests.cli.support import run
from tests.support import REPOSITORY

SERVICES = REPOSITORY / "cdp" / "services"
# The modules that hold the rule itself.
RULES = {"access"}

# Services that take a workspace and change nothing that somebody made. Whoever adds a service decides: here, or a mark
# of `access`.
READING = {
    "answering": {"command", "latest"},
    "benchmarks": {"list_own", "list_registry", "show"},
    "clusters": {"look", "request", "setting", "trouble"},
    "commands": {"changed"},
    "completeness": {"check", "list_incomplete", "require"},
    "decide": {"awaiting", "decide", "load", "of_judged"},
    "demo": {"corpus"},
    "doctor": {"check", "prunable"},
    "endpoints": {"remembered", "writer"},
    "evidence": {"running"},
    "evaluation": {"checked", "strong_baselines"},
    "jobs": {
        "again",
        "command",
        "curve",
        "failed",
        "follow",
        "in_words",
        "latest",
        "log",
        "missing_secrets",
        "outcome",
        "running",
        "show",
        "to_allow",
        "wait",
    },
    "judging": {"given_before", "judged_name", "missing", "repeated", "to_judge", "writer_of"},
    "metrics": {"fitting", "paired", "quick", "results"},
    "projects": {
        "check_unused",
        "default",
        "free_name",
        "list_projects",
        "members",
        "project_of",
        "projects_of",
        "resolve",
    },
    "queries": {"failures", "list_query_sets", "page", "preview", "show", "unit"},
    "search": {"list_retrievers"},
    "studies": {"grid_for", "kept", "list_studies", "report", "speeds"},
    "training": {"defaults", "lacking", "list_retrievers"},
    "trial": {"at_work", "command", "example_query", "has_judged", "of_project", "running", "trouble"},
    "tuning": {"result"},
}


@functools.cache
def services() -> list[tuple[str, str]]:
    """Every public service that takes a workspace or settings."""
    found = []
    for path in sorted(SERVICES.rglob("*.py")):
        module = ".".join(path.relative_to(SERVICES).with_suffix("").parts).removesuffix(".__init__")
        if module in RULES:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                words = {ast.unparse(a.annotation) for a in node.args.args if a.annotation}
                if "Workspace" in words or any(word.endswith("Config") for word in words):
                    found.append((module, node.name))
    return found


def action(module: str, name: str) -> Action | None:
    service = getattr(importlib.import_module(f"cdp.services.{module}"), name)
    marked: Action | None = getattr(service, "action", None)
    return marked


CHANGING = [(m, n) for m, n in services() if action(m, n) in (Action.CHANGE, Action.RUN)]


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(permission.READ_ONLY, "1")
    permission.in_dashboard()


def test_there_are_services_to_ask() -> None:
    assert {("corpora", "add"), ("training", "start"), ("jobs", "stop"), ("demo", "load")} <= set(CHANGING)
    assert ("queries", "export") in CHANGING


def test_every_service_is_marked_or_known_to_read() -> None:
    """Settings are looked at too: whoever takes some is marked, unless it only writes them down."""
    wrong = [f"{m}.{n}" for m, n in services() if (action(m, n) is not None) == (n in READING.get(m, ()))]
    assert not wrong, "mark them with access.writes, runs or reads, or list them as reading"


@pytest.mark.parametrize(("module", "name"), CHANGING)
def test_every_service_that_writes_refuses(module: str, name: str, dashboard: None, workspace: Workspace) -> None:
    service = getattr(importlib.import_module(f"cdp.services.{module}"), name)
    with pytest.raises(permission.ReadOnlyError, match="read-only"):
        service(workspace)
    assert not workspace.root.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_reading_goes_on(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    permission.in_dashboard()
    monkeypatch.setenv(permission.READ_ONLY, "yes")
    assert [c.name for c in corpora.list_corpora(workspace)] == ["demo"]
    assert jobs.list_jobs(workspace) == []


@pytest.mark.slow
def test_the_command_line_does_not_obey_it(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(permission.READ_ONLY, "1")
    run("demo")
    assert len(corpora.list_corpora(workspace)) == 1
