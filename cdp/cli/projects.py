"""Commands on projects, and what ``--project`` does for every command that knows it."""

from __future__ import annotations

import argparse
from typing import Any

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import note, say, settings, warn
from cdp.projects import Project

FILLED = {"corpus": "corpora", "query_set": "query_sets", "benchmark": "benchmarks"}
"""Options that a project fills in, and which of its members they are."""


def apply(workspace: Workspace, a: argparse.Namespace, fills: tuple[str, ...]) -> None:
    """Find out which project a command is about: ``a.scope`` are its members, and options left out are filled in.

    ConfigError where one is left out and the project has none such thing, or several.
    """
    from cdp.services import projects

    chosen = projects.resolve(workspace, a.project) if a.project not in ("", projects.ALL) else None
    if not a.project:
        chosen = projects.default(workspace)
    a.scope = projects.members(workspace, chosen.id if chosen else projects.ALL)
    for option in fills:
        name = option.lstrip("-")
        if getattr(a, name):
            continue
        if chosen is None:  # as argparse would have it
            a.command[0].error(f"the following arguments are required: {option}")
        setattr(a, name, _only(a.scope, name))
    if chosen and not a.project and not fills:
        note(f"project {chosen.name}; everything: --project all")


def _only(scope: Any, name: str) -> str:
    """The project's only thing of a kind."""
    kind = name.replace("_", " ")
    things = getattr(scope, FILLED[name])
    if len(things) != 1:
        there = f"has {len(things)}: {', '.join(things[:5])}" if things else "has none"
        raise ConfigError(f"No {kind} is named, and the project {scope.project.name} {there}.", hint="Name one.")
    return str(things[0])


def joined(workspace: Workspace, a: argparse.Namespace, *, corpus: str = "", benchmark: str = "") -> None:
    """What was added joins the project that the command is about."""
    from cdp.services import projects

    if a.scope.project is not None:
        projects.add_members(
            workspace,
            a.scope.project.id,
            corpora=[corpus] if corpus else [],
            benchmarks=[benchmark] if benchmark else [],
        )


def add(workspace: Workspace, a: argparse.Namespace) -> int:
    """``projects add``: the one import."""
    from cdp.services.projects import adding
    from cdp.services.projects.questions import AddOptions

    reads = ("split", "encoding")
    given = {field: getattr(a, field) for field in ("id_field", "title_field", "text_field", "query_field",
             "document_field", "split_field", "grade_field", "origin", *reads)}  # fmt: skip
    given = {**{field: value for field, value in given.items() if value is not None}, **settings(a)}
    own = AddOptions.settings()
    from cdp.corpus import ReadOptions

    reading = ReadOptions.from_dict({field: value for field, value in given.items() if field not in own})
    options = AddOptions.from_dict({field: value for field, value in given.items() if field in own})
    if a.look:
        seen = adding.examine(workspace, a.path, a.queries, reading=reading)
        return say(a, seen, "\n\n".join(_glimpsed(glimpse) for glimpse in (seen.documents, seen.queries) if glimpse))
    done = adding.add(workspace, a.path, a.queries, name=a.name, project=a.project, options=options, reading=reading)
    lines = [
        f"project {done.project.id}: {done.project.name}",
        f"corpus {done.corpus.id}: {display.many(done.corpus.n_documents, 'document')}"
        + (" (it was here)" if done.existed else ""),
    ]
    if done.benchmark is not None:
        judged = ", ".join(f"{split} {n:,}" for split, n in done.benchmark.judged.items())
        lines.append(f"benchmark {done.benchmark.name}: queries by split: {judged}")
    lines += [f"query set {q.id}: {display.many(q.n_queries, 'query', 'queries')}" for q in done.query_sets]
    lines += [f"left out: {reason}: {n:,}" for reason, n in done.left_out.items()]
    lines += done.stated
    lines += [f"missing: {text}" for text in done.missing]
    return say(a, {**display.plain(done), "id": done.project.id}, "\n".join(lines))


def _glimpsed(glimpse: Any) -> str:
    """A look at one file: its first rows, and what its columns seem to be."""
    roles = {"id": glimpse.id, "title": glimpse.title, "text": glimpse.text, "queries": glimpse.queries}
    seems = ", ".join(f"{role}: {column}" for role, column in roles.items() if column)
    more = f" and {glimpse.n_files - 1:,} more files" if glimpse.n_files > 1 else ""
    gaps = ", ".join(f"{column} in {n}" for column, n in glimpse.gaps.items() if n)
    rows = [{column: row.get(column, "") for column in glimpse.columns} for row in glimpse.rows]
    lines = [f"{glimpse.file}{more} ({seems or 'a document each'})", display.table(rows, glimpse.columns, "no rows")]
    if gaps:
        lines.append(f"empty among the first {glimpse.looked_at} rows: {gaps}")
    return "\n".join([*lines, *glimpse.notes])


def list_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``projects list``."""
    from cdp.services import projects

    used = projects.default(workspace)
    rows = [_row(project, used) for project in projects.list_projects(workspace)]
    columns = ["id", "name", "corpora", "benchmarks", "used", "created"]
    for problem in projects.damaged(workspace):
        warn(problem)
    return say(a, rows, display.table([_counted(row) for row in rows], columns, projects.NONE_YET))


def _row(project: Project, used: Project | None) -> dict[str, Any]:
    return {**display.plain(project), "used": used is not None and used.id == project.id}


def _counted(row: dict[str, Any]) -> dict[str, Any]:
    counts = {name: len(row[name]) for name in ("corpora", "benchmarks")}
    return {**row, **counts, "used": "yes" if row["used"] else ""}


def show(workspace: Workspace, a: argparse.Namespace) -> int:
    """``projects show``."""
    from cdp.services import jobs, projects

    project = projects.resolve(workspace, a.id)
    scope = projects.members(workspace, project.id)
    own_jobs = [job.id for job in jobs.list_jobs(workspace) if project.id in scope.index.of_job(job)]
    gone = projects.missing(workspace, project)
    value = {**display.plain(project), "query_sets": scope.query_sets, "jobs": own_jobs, "missing": gone}
    lines = [
        f"{project.name} ({project.id}), {project.created}",
        f"corpora: {', '.join(project.corpora) or 'none'}",
        f"benchmarks: {', '.join(project.benchmarks) or 'none of its own'}",
        f"query sets: {', '.join(scope.query_sets) or 'none'}",
        f"jobs: {len(own_jobs):,}",
        *(f"missing: {text}" for text in gone),
    ]
    return say(a, value, "\n".join([*lines, *([project.notes] if project.notes else [])]))


def use(workspace: Workspace, a: argparse.Namespace) -> int:
    """``projects use``."""
    from cdp.services import projects

    project = projects.use(workspace, a.name)
    said = f"commands are about {project.name} ({project.id})" if project else "commands are about the whole workspace"
    return say(a, project, said)


def create(workspace: Workspace, a: argparse.Namespace) -> int:
    """``projects create``."""
    from cdp.services import projects

    project = projects.create(workspace, a.name, corpora=a.corpus, benchmarks=a.benchmark, notes=a.notes)
    return _changed(a, project)


def include(workspace: Workspace, a: argparse.Namespace) -> int:
    """``projects include``."""
    from cdp.services import projects

    return _changed(a, projects.add_members(workspace, a.id, corpora=a.corpus, benchmarks=a.benchmark))


def exclude(workspace: Workspace, a: argparse.Namespace) -> int:
    """``projects exclude``."""
    from cdp.services import projects

    return _changed(a, projects.remove_members(workspace, a.id, corpora=a.corpus, benchmarks=a.benchmark))


def rename(workspace: Workspace, a: argparse.Namespace) -> int:
    """``projects rename``."""
    from cdp.services import projects

    return _changed(a, projects.rename(workspace, a.id, a.name))


def note_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``projects note``."""
    from cdp.services import projects

    return _changed(a, projects.annotate(workspace, a.id, a.notes))


def delete(workspace: Workspace, a: argparse.Namespace) -> int:
    """``projects delete``."""
    from cdp.services import projects

    project = projects.resolve(workspace, a.id)
    projects.delete(workspace, project.id)
    return say(a, {"id": project.id, "deleted": True}, f"{project.id} is removed; its corpora and benchmarks stay")


def _changed(a: argparse.Namespace, project: Project) -> int:
    corpora = display.many(len(project.corpora), "corpus", "corpora")
    benchmarks = display.many(len(project.benchmarks), "benchmark")
    return say(a, project, f"{project.id}: {project.name}, {corpora}, {benchmarks}")
