"""Projects: ``project.json`` with its members' ids; the project that commands remember.

The sole owner of ``projects/`` in the workspace. A project is a record of ids; ``forget`` removes deleted ones.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError, NotFoundError, WorkspaceError
from cdp.base.locks import locked
from cdp.base.records import checked
from cdp.base.text import storable
from cdp.base.workspace import Workspace, is_name, now, read_json, read_json_or_none, slug, write_json

SCHEMA = 1
# The members of a project. Query sets belong to it by their corpus, jobs by their inputs.
KINDS = ("corpora", "benchmarks")
FILE, DEFAULT = "project.json", "default.json"
LIST = "The list of projects"
RESERVED = frozenset(("all", "none"))  # addresses and options give these another meaning
HOW_TO_REPAIR = "Repair the file, or delete the folder and create the project again; its members are not affected."

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Project:
    """A project. ``corpora`` and ``benchmarks`` are ids, in the order in which they were added.

    ``implied``: without a file. A corpus that is in no project has an implied one of its own name.
    """

    id: str
    name: str
    created: str
    corpora: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    implied: bool = False

    def with_members(self, corpora: tuple[str, ...], benchmarks: tuple[str, ...]) -> Project:
        """Return the project with these members added; each once."""
        return replace(
            self,
            corpora=tuple(dict.fromkeys((*self.corpora, *corpora))),
            benchmarks=tuple(dict.fromkeys((*self.benchmarks, *benchmarks))),
        )

    @classmethod
    def from_dict(cls, values: Any, path: Path) -> Project:
        """Return the project in a record; WorkspaceError if it is damaged or of another folder."""
        project = replace(checked(cls, values, path), implied=False)
        texts = (project.name, *project.corpora, *project.benchmarks)
        if not all(map(storable, texts)):
            raise WorkspaceError(f"{path} holds text with NUL or half a character.", hint=HOW_TO_REPAIR)
        for member in (*project.corpora, *project.benchmarks):
            # Commands fill in a project's only benchmark; a stranger's project may name a folder in its place.
            if member != Path(member).name or member.startswith((".", "~")):
                raise WorkspaceError(f"{path} names {member[:80]!r}, which is no id.", hint=HOW_TO_REPAIR)
        if project.id != path.parent.name:
            raise WorkspaceError(f"{path} is of another project, {project.id[:80]!r}.", hint=HOW_TO_REPAIR)
        return project


def list_projects(workspace: Workspace) -> list[Project]:
    """Return the projects, newest first, without damaged ones; see ``damaged``."""
    return [item for item in _read_all(workspace) if isinstance(item, Project)]


def damaged(workspace: Workspace) -> list[str]:
    """Return a sentence for each damaged project."""
    return [str(item) for item in _read_all(workspace) if isinstance(item, WorkspaceError)]


def _read_all(workspace: Workspace) -> list[Project | WorkspaceError]:
    read: list[Project | WorkspaceError] = []
    for path in sorted(workspace.projects.glob(f"[!.]*/{FILE}")):
        try:
            read.append(Project.from_dict(read_json(path), path))
        except WorkspaceError as error:
            _log.warning("%s", error)
            read.append(error)

    return sorted(read, key=_age, reverse=True)


def _age(item: Project | WorkspaceError) -> tuple[str, str]:
    """Order by creation; what cannot be read is the oldest."""
    if isinstance(item, Project):
        return item.created, item.id
    return "", ""


def load(workspace: Workspace, project_id: str) -> Project:
    """Return the project with this id. Raises NotFoundError, or WorkspaceError if its record is damaged."""
    path = workspace.project(project_id) / FILE
    if not path.exists():
        raise NotFoundError("project", project_id, known=[project.id for project in list_projects(workspace)])
    return Project.from_dict(read_json(path), path)


def create(
    workspace: Workspace,
    name: str,
    *,
    project_id: str = "",
    corpora: Collection[str] = (),
    benchmarks: Collection[str] = (),
    created: str = "",
    taken: Collection[str] = (),
) -> Project:
    """Create a project. Without ``project_id`` its id is made from its name; ``taken`` are ids to avoid."""
    if not storable(name):
        raise ConfigError("A name with the character NUL or half of a surrogate pair cannot be stored.")

    with locked(workspace.projects / ".lock", LIST):
        wanted = project_id or _free_id(workspace, name, taken)
        empty = Project(wanted, name, created or now())
        project = empty.with_members(tuple(corpora), tuple(benchmarks))
        if (workspace.project(wanted) / FILE).exists():
            raise WorkspaceError(f"There is a project {wanted} already.", hint="Add to it, or choose another name.")
        _write(workspace, project)

    return project


def _free_id(workspace: Workspace, name: str, taken: Collection[str]) -> str:
    stem = slug(name, fallback="project")
    if not is_name(f"{stem}-999999"):  # letters of four bytes may make it too long for a folder
        stem = "project"

    used = RESERVED.union(taken)
    free, number = stem, 1
    while free in used or workspace.project(free).exists():
        number += 1
        free = f"{stem}-{number}"

    return free


def update(workspace: Workspace, project_id: str, change: Callable[[Project], Project]) -> Project:
    """Apply ``change`` to the stored project, under a lock, and return the result."""
    with locked(workspace.projects / ".lock", LIST):
        before = load(workspace, project_id)
        after = replace(change(before), id=before.id, created=before.created)
        if after != before:
            _write(workspace, after)
    return after


def forget(workspace: Workspace, *, corpus: str = "", benchmark: str = "") -> None:
    """Remove a deleted corpus or benchmark from all projects."""

    def without(project: Project) -> Project:
        corpora = tuple(name for name in project.corpora if name != corpus)
        benchmarks = tuple(name for name in project.benchmarks if name != benchmark)
        return replace(project, corpora=corpora, benchmarks=benchmarks)

    for project in list_projects(workspace):
        if corpus in project.corpora or benchmark in project.benchmarks:
            update(workspace, project.id, without)


def delete(workspace: Workspace, project_id: str) -> None:
    """Delete a project's record, a damaged one too; its corpora and benchmarks stay."""
    folder = workspace.project(project_id)
    if not folder.is_dir():
        load(workspace, project_id)
    with locked(workspace.projects / ".lock", LIST):
        (folder / FILE).unlink(missing_ok=True)  # readers no longer see it
        shutil.rmtree(folder, ignore_errors=True)


def default(workspace: Workspace) -> str:
    """Return the id of the command line's default project; empty if there is none."""
    value = read_json_or_none(workspace.projects / DEFAULT)
    if not isinstance(value, dict):
        return ""

    chosen = value.get("project")
    if isinstance(chosen, str) and is_name(chosen):
        return chosen
    return ""


def set_default(workspace: Workspace, project_id: str) -> None:
    """Set the command line's default project; an empty id removes it."""
    write_json(workspace.projects / DEFAULT, {"project": project_id})


def _write(workspace: Workspace, project: Project) -> None:
    values = asdict(project)
    del values["implied"]
    write_json(workspace.project(project.id) / FILE, {"schema": SCHEMA, **values})
