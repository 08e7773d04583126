"""A read-only dashboard: every service that writes refuses, and nothing else is touched by it."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.services import corpora, jobs
from cdp.services.sharing import access, modes
from cdp.services.sharing.modes import Action
from cdp.services.workspace import demo
from tests.support import REPOSITORY

SERVICES = REPOSITORY / "cdp" / "services"
RULES = {"sharing.access", "sharing.clusters", "sharing.endpoints", "sharing.modes", "sharing.paths", "sharing.stored"}
"""The modules that hold the rule itself."""

READING = {
    "workspace.prune": {"prunable"},
    "clusters": {"chosen", "look", "named", "setting", "trouble"},
    "jobs.devices": {"request"},
    "benchmarks": {"is_several", "list_own", "list_registry", "scores", "show"},
    "jobs.clone": {"prefill", "settings"},
    "commands": {"changed", "settings"},
    "advice.complexity": {"profile_benchmark", "profile_query_set"},
    "completeness": {"check", "list_incomplete", "require", "with_counts"},
    "corpora": {"document", "failed", "mean_characters", "page"},
    "advice.decisions": {"decide"},
    "workspace.doctor": {"check"},
    "results.evaluated": {
        "file_of_run", "find", "folder", "judgments", "passages", "queries", "record", "relevant_from", "remarks",
        "retrieved", "texts",
    },
    "evaluation": {"checked", "judged_on", "without_bm25"},
    "jobs.in_use": {"check_unused", "jobs_that_need", "set_of"},
    "jobs": {
        "failed",
        "curve", "follow", "latest", "log", "missing_secrets", "outcome", "outside", "search_log", "show",
        "sizes", "wait",
    },
    "models": {"list_models", "show"},
    "metrics": {"measuring", "paired", "per_document", "quick", "quick_at_once", "results"},
    "workspace.overview": {"summary"},
    "advice.published": {"own_scores"},
    "queries": {"failures", "list_query_sets", "page", "preview", "show"},
    "metrics.query_pairs": {"document_queries", "list_documents"},
    "results.errors": {"analyse"},
    "results.files": {"available", "content"},
    "results.seeds": {"settings_of"},
    "results.differing": {"settings_of", "differing"},
    "results.board": {"board"},
    "run_annotations": {"file_of", "load"},
    "naming": {"retriever", "training"},
    "results.tables": {"remarks"},
    "training.leakage": {"among", "find_leaks"},
    "advice.pasted": {"load"},
    "results.runs": {"described", "source"},
    "results": {"compare", "list_evaluations", "list_results", "per_query"},
    "metrics.self_bleu_spread": {"spread"},
    "search": {"indexing", "is_running", "list_retrievers", "snippet", "status"},
    "judged": {"candidates", "judgments", "list_benchmarks", "list_queries"},
    "studies": {"list_studies", "report", "speeds", "to_yaml"},
    "studies.filtered": {"source_of"},
    "studies.judged": {"facts", "judged_by", "leaks"},
    "studies.planned_sources": {"sources", "synthesis_of"},
    "studies.trial": {"at_work", "command", "last_generator", "running", "trouble"},
    "advice.decide": {"decide", "of_benchmark", "of_task"},
    "advice.measured": {"list_measured"},
    "advice.several_corpora": {"corpora_of", "corpus_of_sources"},
    "advice.template_queries": {"remarks"},
    "advice.options": {"list_options"},
    "queries.filtering": {"checked", "made_from", "measuring", "round_trips"},
    "queries.review": {"chosen", "decisions", "document", "table", "usability", "whole_table"},
    "studies.study_reuse": {"reused"},
    "training.sweeps": {"grid_for", "list_sweeps", "report", "resolve_sweep"},
    "queries.writers": {"siblings", "writer"},
    "queries.synthesis": {"bill", "bill_of_job"},
    "training": {
        "defaults", "list_retrievers", "pairs_to_split", "possible_splits", "query_counts", "reasoned_sets",
        "trained_on",
    },
    "queries.tuning": {"finished", "list_tunings", "result"},
    "workspace.dashboard": {"server"},
    "workspace.demo": {"corpus"},
    "projects": {"default", "list_projects", "members", "missing", "project_of", "projects_of", "resolve"},
}  # fmt: skip
"""Services that take a workspace and change nothing that somebody made. Whoever adds a service decides: here, or a mark
of ``access``."""


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
    monkeypatch.setenv(modes.READ_ONLY, "1")
    modes.in_dashboard()


def test_there_are_services_to_ask() -> None:
    assert {("corpora", "add"), ("training", "start"), ("jobs", "stop"), ("workspace.demo", "load")} <= set(CHANGING)
    assert {
        ("queries.tuning", "override"),
        ("queries.synthesis", "export"),
        ("queries.synthesis", "save_prices"),
    } <= set(CHANGING)


def test_every_service_is_marked_or_known_to_read() -> None:
    """Settings are looked at too: whoever takes some is marked, unless it only writes them down."""
    wrong = [f"{m}.{n}" for m, n in services() if (action(m, n) is not None) == (n in READING.get(m, ()))]
    assert not wrong, "mark them with access.writes, runs or reads, or list them as reading"


@pytest.mark.parametrize(("module", "name"), CHANGING)
def test_every_service_that_writes_refuses(module: str, name: str, dashboard: None, workspace: Workspace) -> None:
    service = getattr(importlib.import_module(f"cdp.services.{module}"), name)
    with pytest.raises(access.ReadOnlyError, match="read-only"):
        service(workspace)
    assert not workspace.root.exists()


def test_reading_goes_on(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    demo.load(workspace)
    modes.in_dashboard()
    monkeypatch.setenv(modes.READ_ONLY, "yes")
    assert [c.name for c in corpora.list_corpora(workspace)] == ["demo"]
    assert jobs.list_jobs(workspace) == []


@pytest.mark.slow
def test_other_processes_do_not_obey_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(modes.READ_ONLY, "1")
    monkeypatch.setenv("CDP_WORKSPACE", str(tmp_path / "workspace"))
    done = subprocess.run([sys.executable, "-m", "cdp", "demo"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(corpora.list_corpora(Workspace(tmp_path / "workspace"))) == 1
