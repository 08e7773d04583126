"""What there is, what runs, and the next sensible step."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cdp import jobs, query_sets
from cdp.base.errors import ConfigError
from cdp.base.workspace import REPOSITORY, Workspace
from cdp.benchmarks import list_benchmarks
from cdp.corpus import list_corpora
from cdp.jobs import JobView
from cdp.jobs.launchers import python_path
from cdp.services import commands, projects, results
from cdp.services.projects import Members


@dataclass(frozen=True)
class NextStep:
    """A step: its title, why, the page that does it (``queries``) and the command that does it.

    ``choices`` are what the page is opened with: selections by the names of their parameters.
    """

    title: str
    text: str
    page: str
    command: str
    choices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Overview:
    """The workspace at a glance."""

    n_corpora: int
    n_documents: int
    n_query_sets: int
    n_queries: int
    n_trained: int
    n_benchmarks: int
    n_results: int
    n_studies: int
    running: list[JobView]
    latest: list[dict[str, Any]]
    next_step: NextStep


def summary(workspace: Workspace, *, latest: int = 6, scope: Members | None = None) -> Overview:
    """Counts, the latest results and what to do next, of the workspace or of a project; ``running`` are all jobs."""
    scope = scope or projects.members(workspace, projects.ALL)
    corpora = scope.keep("corpus", list_corpora(workspace))
    sets = scope.keep("query_set", query_sets.list_query_sets(workspace))
    every_job = jobs.list_jobs(workspace)
    all_jobs = scope.keep("job", every_job)
    measured = scope.keep("evaluation", results.list_evaluations(workspace))
    rows = results.list_results(workspace, measured)
    trained = [job for job in all_jobs if job.kind == "training" and job.has_model]
    benchmarks = scope.keep("benchmark", list_benchmarks(workspace))
    return Overview(
        n_corpora=len(corpora),
        n_documents=sum(c.n_documents for c in corpora),
        n_query_sets=len(sets),
        n_queries=sum(q.n_queries for q in sets),
        n_trained=len(trained),
        n_benchmarks=len(benchmarks),
        n_results=len(measured),
        n_studies=sum(job.kind == "study" and str(job.state) == "finished" for job in all_jobs),
        running=[job for job in every_job if job.active],
        latest=rows[:latest],
        next_step=_next(corpora, sets, trained, benchmarks, rows, [job for job in all_jobs if job.active]),
    )


def _next(
    corpora: list[Any],
    sets: list[Any],
    trained: list[JobView],
    benchmarks: list[Any],
    rows: list[Any],
    active: list[Any],
) -> NextStep:
    if not corpora:
        command = commands.line("corpus", "add", "documents.jsonl")
        return NextStep(
            "Add your documents", "upload files or a folder, or enter a path on this server.", "documents", command
        )
    if not sets:
        title = "See diverse and paraphrase queries for a document"
        text = "compare the two kinds side by side, then write queries for the whole corpus."
        return NextStep(title, text, "queries", commands.line("queries", "preview", "--corpus", corpora[0].id))
    if active and not trained:
        text = "it goes on whatever happens to this page."
        return NextStep("Watch the running job", text, "jobs", commands.line("jobs", "list"))
    if not trained:
        text = "train on a query set, and evaluate before and after."
        command = commands.line("train", sets[0].id, "--retriever", "static-minilm", "--wait")
        return NextStep("Train a retriever", text, "launch", command)
    if not rows and not benchmarks:
        text = "a retriever is judged on queries whose answers are known."
        return NextStep("Bring a benchmark", text, "benchmarks", commands.line("benchmarks", "list"))
    first = trained[0]
    if not rows:
        text, choices = "evaluate it and the untrained one on a benchmark.", {"start": "evaluation", "judged": first.id}
        command = commands.line("evaluate", first.id, "--benchmark", benchmarks[0].name, "--wait")
        return NextStep("Evaluate your retriever", text, "launch", command, choices)
    text, base = "pick a baseline and see the differences, with their intervals.", first.config.get("retriever")
    command = commands.line("results", "compare", "--baseline", base or "static-minilm")
    return NextStep("Compare the results", text, "compare", command)


PORT = 8501


def server(workspace: Workspace, *, port: int = PORT, browser: bool = False) -> tuple[list[str], dict[str, str]]:
    """The command that serves the dashboard of this workspace on this machine alone, and its environment.

    Everything else is as ``.streamlit/config.toml`` beside ``app.py`` says, or Streamlit's own variables
    (``STREAMLIT_SERVER_ADDRESS``). ConfigError for no port, and where Streamlit is not installed.
    """
    if not 0 < port < 65536:
        raise ConfigError(f"There is no port {port}.", hint="Ports go from 1 to 65535.")
    if importlib.util.find_spec("streamlit") is None:
        from cdp.services.doctor import DISTRIBUTION

        hint = f"Install it with: {sys.executable} -m pip install '{DISTRIBUTION}[app]'"
        raise ConfigError("The dashboard needs Streamlit, which is not installed.", hint=hint)
    options = ["--server.port", str(port), "--server.headless", "false" if browser else "true"]
    command = [sys.executable, "-m", "streamlit", "run", str(REPOSITORY / "app.py"), *options]
    return command, {**os.environ, "CDP_WORKSPACE": str(workspace.root), "PYTHONPATH": python_path(os.environ)}
