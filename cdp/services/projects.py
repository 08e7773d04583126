"""Projects: the corpora and benchmarks that belong together, and with them their queries, jobs and results.

``members(workspace, project_id)`` says what belongs to a project; a list is cut down with it where it is shown. A
corpus in no project stands for one of its own name (``implied``), which is made when something is changed on it. A
benchmark in no project belongs to none, and is for all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from cdp import projects
from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.text import checked_title, pick, storable
from cdp.base.workspace import Workspace
from cdp.benchmarks import library
from cdp.corpus import list_corpora, resolve_corpus
from cdp.projects import Project, damaged
from cdp.services import access
from cdp.services.belonging import Index, Members

__all__ = ["ALL", "Index", "Members", "Project", "damaged"]

ALL = "all"
"""In place of a project: everything in the workspace, whatever it belongs to."""

NOTES_AT_MOST = 10_000
"""Characters."""

NONE_YET = "There is no project yet: add documents (projects add PATH)."


def list_projects(workspace: Workspace) -> list[Project]:
    """All projects, the newest first: those that were made, and one for each corpus that is in none."""
    return Index(workspace).projects


def resolve(workspace: Workspace, name: str) -> Project:
    """The project with this id, this name, or the only one whose id or name begins so; see ``names.pick``."""
    return pick("project", name, list_projects(workspace), none_yet=NONE_YET)


def project_of(workspace: Workspace, kind: str, thing: str) -> Project | None:
    """The project of a ``corpus``, ``query_set``, ``benchmark`` or ``job`` by its id, the newest of several; None for a
    thing that is in none, or is not there. ``projects_of`` gives them all."""
    return next(iter(projects_of(workspace, kind, thing)), None)


def projects_of(workspace: Workspace, kind: str, thing: str) -> list[Project]:
    """Every project that a thing belongs to, the newest first."""
    index = Index(workspace)
    ids = index.of(kind, thing)
    return [project for project in index.projects if project.id in ids]


def members(workspace: Workspace, project_id: str | None) -> Members:
    """What belongs to a project; with ``ALL`` (or None) everything does. NotFoundError for one that is not there."""
    index = Index(workspace)
    if project_id in (None, "", ALL):
        return Members(None, index)
    return Members(pick("project", str(project_id), index.projects, none_yet=NONE_YET), index)


def missing(workspace: Workspace, project: Project) -> list[str]:
    """The corpora and benchmarks that a project names and that are gone or cannot be read, each with what to do."""
    messages = []
    corpora = {manifest.id for manifest in list_corpora(workspace)}
    for corpus in project.corpora:
        if corpus not in corpora:
            state = "is damaged" if (workspace.corpora / corpus).is_dir() else "was deleted"
            messages.append(f"The corpus {corpus} {state}. Add its documents again.")
    problems = {info.name: info.problem for info in library.list_benchmarks(workspace)}
    for name in project.benchmarks:
        if problems.get(name, "it is gone"):
            state = f"cannot be used: {problems[name].rstrip('.')}" if name in problems else "was deleted"
            messages.append(f"The benchmark {name} {state}. Add it again.")
    return messages


@access.writes
def create(
    workspace: Workspace,
    name: str,
    *,
    corpora: Sequence[str] = (),
    benchmarks: Sequence[str] = (),
    notes: str = "",
) -> Project:
    """A new project with these members. ConfigError where another one has the name."""
    title = _title(workspace, name)
    return projects.create(
        workspace,
        title,
        corpora=_corpora(workspace, corpora),
        benchmarks=_benchmarks(workspace, benchmarks),
        notes=_notes(notes),
        taken={manifest.id for manifest in list_corpora(workspace)},  # these are the ids of implied projects
    )


@access.writes
def add_members(
    workspace: Workspace, project_id: str, *, corpora: Sequence[str] = (), benchmarks: Sequence[str] = ()
) -> Project:
    """Take corpora and benchmarks, which stay in other projects that have them, into this one."""
    new = _corpora(workspace, corpora), _benchmarks(workspace, benchmarks)
    project = _made(workspace, resolve(workspace, project_id))
    return projects.update(workspace, project.id, lambda before: before.with_members(*new))


@access.writes
def rename(workspace: Workspace, project_id: str, name: str) -> Project:
    """Another name; the id stays. ConfigError where another project has it."""
    project = resolve(workspace, project_id)
    title = _title(workspace, name, besides=project.id)
    return projects.update(workspace, _made(workspace, project).id, lambda before: replace(before, name=title))


@access.writes
def annotate(workspace: Workspace, project_id: str, notes: str) -> Project:
    """Write the project's notes, a text of one's own, in place of those there are."""
    text = _notes(notes)
    project = _made(workspace, resolve(workspace, project_id))
    return projects.update(workspace, project.id, lambda before: replace(before, notes=text))


@access.writes
def delete(workspace: Workspace, project_id: str) -> None:
    """Remove a project. What belonged to it stays: each of its corpora then stands for a project of its own."""
    project = resolve(workspace, project_id)
    if project.implied:
        raise ConfigError(f"{project.name} is a corpus in no project; there is nothing to remove.")
    projects.delete(workspace, project.id)


@access.writes
def use(workspace: Workspace, name: str) -> Project | None:
    """Remember a project: commands without ``--project`` are about it. ``ALL`` (or nothing) forgets it again."""
    if name in ("", ALL):
        projects.set_default(workspace, "")
        return None
    project = resolve(workspace, name)
    projects.set_default(workspace, project.id)
    return project


def default(workspace: Workspace) -> Project | None:
    """The project that ``use`` remembered, if it is still there."""
    chosen = projects.default(workspace)
    return next((p for p in list_projects(workspace) if p.id == chosen), None) if chosen else None


def _made(workspace: Workspace, project: Project) -> Project:
    """A project that has a record: an implied one gets it, under the id by which links know it."""
    if not project.implied:
        return project
    return projects.create(
        workspace, project.name, project_id=project.id, corpora=project.corpora, created=project.created
    )


def _title(workspace: Workspace, name: str, besides: str = "") -> str:
    """A name that can be stored and is nobody else's."""
    title = " ".join(checked_title(name).split())
    if not title:
        raise ConfigError("A project needs a name.")
    for project in list_projects(workspace):
        if project.id != besides and not project.implied and project.name.casefold() == title.casefold():
            raise ConfigError(
                f"There is a project called {project.name} already ({project.id}).",
                hint="Add to it, or choose another name.",
            )
    return title


def _notes(notes: str) -> str:
    if not storable(notes) or len(notes) > NOTES_AT_MOST:
        raise ConfigError(
            f"Notes have at most {NOTES_AT_MOST:,} characters, without NUL and halves of surrogate pairs."
        )
    return notes


def _corpora(workspace: Workspace, names: Collection[str]) -> tuple[str, ...]:
    return tuple(resolve_corpus(workspace, name).id for name in names)


def _benchmarks(workspace: Workspace, names: Collection[str]) -> tuple[str, ...]:
    known = library.list_names(workspace) if names else []
    for name in names:
        if name not in known:
            raise NotFoundError("benchmark", name, known=known)
    return tuple(names)
