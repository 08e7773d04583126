"""Projects: which corpora and benchmarks belong together, under one name.

The sole owner of ``projects/`` in the workspace. A project is a record that names things by their ids; the things
themselves stay where they are, and whoever removes one takes it out of its projects too (``forget``).
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError, NotFoundError, WorkspaceError
from cdp.base.locks import locked
from cdp.base.records import checked
from cdp.base.text import storable
from cdp.base.workspace import Workspace, is_name, now, read_json, read_json_or_none, slug, write_json

SCHEMA = 1

# What a project names itself. Query sets belong to it by their corpus, jobs by what they are given.
KINDS = ("corpora", "benchmarks")


@dataclass(frozen=True, slots=True)
class Project:
    """A project. ``corpora`` and ``benchmarks`` are ids, in the order in which they were added.

    ``implied`` is one without a record: a corpus in no project stands for one of its own name, and has no file.
    """

    id: str
    name: str
    created: str
    corpora: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    implied: bool = False

    def with_members(self, corpora: tuple[str, ...], benchmarks: tuple[str, ...]) -> Project:
        """The same project with these members besides its own; each once."""
        return replace(
            self,
            corpora=tuple(dict.fromkeys((*self.corpora, *corpora))),
            benchmarks=tuple(dict.fromkeys((*self.benchmarks, *benchmarks))),
        )

    def without(self, corpora: tuple[str, ...], benchmarks: tuple[str, ...]) -> Project:
        """The same project without these members."""
        return replace(
            self,
            corpora=tuple(name for name in self.corpora if name not in corpora),
            benchmarks=tuple(name for name in self.benchmarks if name not in benchmarks),
        )

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the file."""
        values = asdict(self)
        values.pop("implied")
        return {"schema": SCHEMA, **values}

    @classmethod
    def from_dict(cls, values: Any, path: Path) -> Project:
        """What was read from ``path``; WorkspaceError where it is no project, or that of another folder.

        Fields that a later version added are passed over.
        """
        if not isinstance(values, Mapping):
            raise WorkspaceError(f"{path} is not a project: it holds no JSON object.", hint=HOW_TO_REPAIR)
        known = {field.name for field in fields(cls)} - {"implied"}
        project = checked(cls, {name: value for name, value in values.items() if name in known}, path)
        texts = (project.name, *project.corpora, *project.benchmarks)
        if not all(storable(text) for text in texts):
            raise WorkspaceError(f"{path} holds text with NUL or half a character.", hint=HOW_TO_REPAIR)
        if project.id != path.parent.name:
            raise WorkspaceError(f"{path} is of another project, {project.id[:80]!r}.", hint=HOW_TO_REPAIR)
        return project


HOW_TO_REPAIR = "Repair the file, or remove the folder and make the project anew; corpora and benchmarks are untouched."


FILE = "project.json"
DEFAULT = "default.json"

# What in an address or an option stands for something else than a project's id.
RESERVED = frozenset(("all", "none"))

_log = logging.getLogger(__name__)


def list_projects(workspace: Workspace) -> list[Project]:
    """The projects that were made, the newest first. A damaged one is left out; ``damaged`` names it."""
    return [item for item in _read_all(workspace) if isinstance(item, Project)]


def damaged(workspace: Workspace) -> list[str]:
    """What is wrong with each project whose record cannot be read, in a sentence."""
    return [str(item) for item in _read_all(workspace) if isinstance(item, WorkspaceError)]


def _read_all(workspace: Workspace) -> list[Project | WorkspaceError]:
    read: list[Project | WorkspaceError] = []
    for path in sorted(workspace.projects.glob(f"[!.]*/{FILE}")):
        try:
            read.append(Project.from_dict(read_json(path), path))
        except WorkspaceError as error:
            _log.warning("%s", error)
            read.append(error)
    return sorted(
        read, key=lambda item: (item.created, item.id) if isinstance(item, Project) else ("", ""), reverse=True
    )


def load(workspace: Workspace, project_id: str) -> Project:
    """The project with exactly this id; NotFoundError, or WorkspaceError where its record is damaged."""
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
    """A new project. Its id is made of its name unless it is given; ``taken`` are ids that it may not have."""
    if not storable(name):
        raise ConfigError("A name with the character NUL or half of a surrogate pair cannot be stored.")
    with _locked(workspace):
        wanted = project_id or _free_id(workspace, name, taken)
        empty = Project(wanted, name, created or now())
        project = empty.with_members(tuple(corpora), tuple(benchmarks))
        if (workspace.project(wanted) / FILE).exists():
            raise WorkspaceError(f"There is a project {wanted} already.", hint="Add to it, or choose another name.")
        _write(workspace, project)
    return project


def _free_id(workspace: Workspace, name: str, taken: Collection[str]) -> str:
    stem = slug(name, fallback="project")
    number = 1
    while True:
        candidate = stem if number == 1 else f"{stem}-{number}"
        if is_name(candidate) and not (
            candidate in RESERVED or candidate in taken or workspace.project(candidate).exists()
        ):
            return candidate
        stem = stem if is_name(candidate) else "project"  # letters of four bytes may make it too long for a folder
        number += 1


def update(workspace: Workspace, project_id: str, change: Callable[[Project], Project]) -> Project:
    """The project after ``change``, which is given what stands in the file. Two who change it wait for each other."""
    with _locked(workspace):
        before = load(workspace, project_id)
        after = replace(change(before), id=before.id, created=before.created)
        if after != before:
            _write(workspace, after)
    return after


def forget(workspace: Workspace, *, corpus: str = "", benchmark: str = "") -> None:
    """Take a corpus or a benchmark that is no more out of every project."""
    if not any({corpus, benchmark} & {*project.corpora, *project.benchmarks} for project in list_projects(workspace)):
        return
    with _locked(workspace):
        for before in list_projects(workspace):
            after = before.without((corpus,), (benchmark,))
            if after != before:
                _write(workspace, after)


def delete(workspace: Workspace, project_id: str) -> None:
    """Remove a project's record; its corpora and benchmarks stay. A damaged record may be removed as well."""
    folder = workspace.project(project_id)
    if not folder.is_dir():
        load(workspace, project_id)
    with _locked(workspace):
        (folder / FILE).unlink(missing_ok=True)  # from now on it is no project
        shutil.rmtree(folder, ignore_errors=True)


def default(workspace: Workspace) -> str:
    """The id of the project that the command line uses unless it is told another; empty if there is none."""
    value = read_json_or_none(workspace.projects / DEFAULT)
    chosen = value.get("project") if isinstance(value, dict) else None
    return chosen if isinstance(chosen, str) and is_name(chosen) else ""


def set_default(workspace: Workspace, project_id: str) -> None:
    """Remember a project for the command line; an empty id forgets it."""
    write_json(workspace.projects / DEFAULT, {"project": project_id})


def _write(workspace: Workspace, project: Project) -> None:
    write_json(workspace.project(project.id) / FILE, project.to_dict())


@contextmanager
def _locked(workspace: Workspace) -> Iterator[None]:
    with locked(workspace.projects / ".lock", "The list of projects"):
        yield
