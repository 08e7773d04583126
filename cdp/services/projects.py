"""What belongs to which project; create, rename, delete; refusing to delete what a job uses.

``members(workspace, project_id)`` says what belongs to a project; each list is filtered with it where it is shown. A
corpus in no project counts as an implied project of its own, which is created on its first change. A benchmark in no
project is for all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from typing import Any, TypeVar

from cdp import jobs, projects, query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, ConfigError, NotFoundError, some
from cdp.base.text import checked_title, pick
from cdp.base.workspace import Workspace, is_name
from cdp.benchmarks import BenchmarkInfo, library, manifests
from cdp.corpus import list_corpora, resolve_corpus
from cdp.jobs import JobSpec, JobView
from cdp.projects import Project, damaged
from cdp.services import access
from cdp.synthesis.work import query_set_id

__all__ = ["ALL", "Index", "Members", "Project", "damaged"]

# In place of a project: everything in the workspace.
ALL = "all"

NONE_YET = "There is no project yet: add documents (projects add PATH)."
NOTHING: frozenset[str] = frozenset()

T = TypeVar("T")


def list_projects(workspace: Workspace) -> list[Project]:
    """Return all projects, newest first, implied ones included."""
    return Index(workspace).projects


def resolve(workspace: Workspace, name: str) -> Project:
    """Return the project with this id, name or unique prefix; see ``text.pick``."""
    return pick("project", name, list_projects(workspace), none_yet=NONE_YET)


def project_of(workspace: Workspace, kind: str, thing: str) -> Project | None:
    """Return the newest of ``projects_of``, or None."""
    return next(iter(projects_of(workspace, kind, thing)), None)


def projects_of(workspace: Workspace, kind: str, thing: str) -> list[Project]:
    """Return the projects of a ``corpus``, ``query_set``, ``benchmark`` or ``job`` by its id, newest first."""
    index = Index(workspace)
    ids = index.of(kind, thing)
    return [project for project in index.projects if project.id in ids]


def members(workspace: Workspace, project_id: str | None) -> Members:
    """Return what belongs to a project; everything for ``ALL`` or None. NotFoundError for an unknown project."""
    index = Index(workspace)
    if project_id in (None, "", ALL):
        return Members(None, index)
    return Members(pick("project", str(project_id), index.projects, none_yet=NONE_YET), index)


@access.writes
def create(workspace: Workspace, name: str, *, corpora: Sequence[str] = (), benchmarks: Sequence[str] = ()) -> Project:
    """Create a project with these members. ConfigError where another one has the name."""
    return projects.create(
        workspace,
        _title(workspace, name),
        corpora=_corpora(workspace, corpora),
        benchmarks=_benchmarks(workspace, benchmarks),
        taken={manifest.id for manifest in list_corpora(workspace)},  # these are the ids of implied projects
    )


@access.writes
def add_members(
    workspace: Workspace, project_id: str, *, corpora: Sequence[str] = (), benchmarks: Sequence[str] = ()
) -> Project:
    """Add corpora and benchmarks to a project; they stay in other projects that have them."""
    new = _corpora(workspace, corpora), _benchmarks(workspace, benchmarks)
    project = _made(workspace, resolve(workspace, project_id))
    return projects.update(workspace, project.id, lambda before: before.with_members(*new))


@access.writes
def take_along(workspace: Workspace, kind: str, thing: str, benchmark: str) -> None:
    """Add a benchmark to all projects of the ``corpus`` or ``benchmark`` that it was made from."""
    for project in projects_of(workspace, kind, thing):
        add_members(workspace, project.id, benchmarks=[benchmark])


@access.writes
def rename(workspace: Workspace, project_id: str, name: str) -> Project:
    """Rename a project; its id stays. ConfigError where another project has the name."""
    project = resolve(workspace, project_id)
    title = _title(workspace, name, besides=project.id)
    return projects.update(workspace, _made(workspace, project).id, lambda before: replace(before, name=title))


@access.writes
def delete(workspace: Workspace, project_id: str) -> None:
    """Delete a project. Its members stay, each of its corpora as an implied project."""
    project = resolve(workspace, project_id)
    if project.implied:
        raise ConfigError(f"{project.name} is a corpus in no project; there is nothing to remove.")
    projects.delete(workspace, project.id)


@access.writes
def use(workspace: Workspace, name: str) -> Project | None:
    """Remember the project of commands without ``--project``; ``ALL`` or "" forgets it."""
    project = None if name in ("", ALL) else resolve(workspace, name)
    projects.set_default(workspace, project.id if project else "")
    return project


def default(workspace: Workspace) -> Project | None:
    """Return the project that ``use`` remembered, if it still exists."""
    chosen = projects.default(workspace)
    if not chosen:
        return None

    return next((p for p in list_projects(workspace) if p.id == chosen), None)


def free_name(workspace: Workspace, wanted: str) -> str:
    """Return a name that no project has: ``wanted``, or with the next free number."""
    taken = {project.name.casefold() for project in list_projects(workspace) if not project.implied}
    numbered = (f"{wanted} {number}" for number in count(2))
    return next(name for name in (wanted, *islice(numbered, len(taken) + 1)) if name.casefold() not in taken)


def _made(workspace: Workspace, project: Project) -> Project:
    """Return the project, an implied one created under the id by which links know it."""
    if not project.implied:
        return project
    return projects.create(
        workspace, project.name, project_id=project.id, corpora=project.corpora, created=project.created
    )


def _title(workspace: Workspace, name: str, besides: str = "") -> str:
    """Return a name that can be stored. ConfigError for an empty or taken one."""
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


def _corpora(workspace: Workspace, names: Collection[str]) -> tuple[str, ...]:
    return tuple(resolve_corpus(workspace, name).id for name in names)


def _benchmarks(workspace: Workspace, names: Collection[str]) -> tuple[str, ...]:
    known = library.list_names(workspace) if names else []
    for name in names:
        if name not in known:
            raise NotFoundError("benchmark", name, known=known)
    return tuple(names)


class Index:
    """The projects of each corpus, benchmark, query set and job of a workspace, read when asked for."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._of_job: dict[str, frozenset[str]] = {}

    @cached_property
    def projects(self) -> list[Project]:
        """All projects, newest first, with an implied one for each corpus in none."""
        made = projects.list_projects(self.workspace)
        # A project that was emptied may still have the id of a corpus that once was implied: the record wins.
        taken = {project.id for project in made}.union(*(project.corpora for project in made))
        implied = [
            Project(manifest.id, manifest.name, manifest.created, corpora=(manifest.id,), implied=True)
            for manifest in list_corpora(self.workspace)
            if manifest.id not in taken
        ]
        return sorted([*made, *implied], key=lambda project: (project.created, project.id), reverse=True)

    @cached_property
    def corpora(self) -> dict[str, frozenset[str]]:
        """{corpus: ids of its projects}."""
        return _owners((project.id, project.corpora) for project in self.projects)

    @cached_property
    def benchmarks(self) -> dict[str, frozenset[str]]:
        """{benchmark: ids of its projects}."""
        return _owners((project.id, project.benchmarks) for project in self.projects)

    @cached_property
    def _corpus_of_set(self) -> dict[str, str]:
        sets = query_sets.list_query_sets(self.workspace)
        # Plans may name query sets by their names; an id that is the same wins.
        return {item.name: item.corpus_id for item in sets} | {item.id: item.corpus_id for item in sets}

    @cached_property
    def _job_ids(self) -> frozenset[str]:
        with suppress(FileNotFoundError):
            return frozenset(os.listdir(self.workspace.jobs))
        return NOTHING

    def of(self, kind: str, thing: str) -> frozenset[str]:
        """Return the ids of the projects of a ``corpus``, ``query_set``, ``benchmark`` or ``job`` with this id."""
        if kind == "corpus":
            return self.corpora.get(thing, NOTHING)

        if kind == "benchmark":
            if owners := self.benchmarks.get(thing):
                return owners
            # One that a model judged belongs where its documents do, and a sample where the whole does.
            about = manifests.read(self.workspace.benchmarks / thing) if is_name(thing) else manifests.Manifest()
            if about.subset is not None and about.subset.of != thing:
                return self.of("benchmark", about.subset.of)
            return self.corpora.get(str(about.source.get("corpus") or ""), NOTHING)

        if kind == "query_set":
            return self.corpora.get(self._corpus_of_set.get(thing, ""), NOTHING)
        if kind == "job":
            return self.of_job_id(thing)

        raise ValueError(f"{kind!r} is no kind of thing in a project")

    def of_job_id(self, job_id: str) -> frozenset[str]:
        """Return the projects of a job; none where there is no such job."""
        if job_id not in self._of_job and is_name(job_id) and (self.workspace.jobs / job_id).is_dir():
            with suppress(CdpError):
                return self.of_job(jobs.load_spec(self.workspace, job_id))
        return self._of_job.get(job_id, NOTHING)

    def of_job(self, job: JobSpec | JobView) -> frozenset[str]:
        """Return the projects of a job that was read already."""
        if job.id not in self._of_job:
            self._of_job[job.id] = NOTHING  # ends the recursion of jobs that name themselves or each other
            self._of_job[job.id] = self._of_spec(job)
        return self._of_job[job.id]

    def _of_spec(self, job: JobSpec | JobView) -> frozenset[str]:
        # Benchmarks only from settings that hold them: not every text, for one may be called "test".
        listed = _texts([job.config.get(name, "") for name in ("benchmark", "benchmarks", "dev")])
        judged = NOTHING.union(*(self.of("benchmark", name) for name in listed))
        if job.kind == "evaluation":
            return self.of_job_id(str(job.config.get("retriever", ""))) | judged
        named = set(_texts([job.config, job.inputs]))
        own = NOTHING.union(*(self.of("corpus", name) | self.of("query_set", name) for name in named))
        if own:
            return own

        others = (named & self._job_ids) - {job.id}
        return NOTHING.union(*map(self.of_job_id, others)) or judged


@dataclass(frozen=True)
class Members:
    """What belongs to ``project``; everything where it is None.

    ``has_…`` and ``keep`` take members of the project, and what belongs to no project at all.
    """

    project: Project | None
    index: Index

    @property
    def corpora(self) -> tuple[str, ...]:
        """The ids of the project's corpora."""
        return self.project.corpora if self.project else tuple(self.index.corpora)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The names of the project's own benchmarks, without those that are for all."""
        return self.project.benchmarks if self.project else tuple(self.index.benchmarks)

    def selected(self, listed: Iterable[BenchmarkInfo]) -> list[BenchmarkInfo]:
        """Return the benchmarks that a form selects at first: the project's own; all where nobody made a project."""
        if self.project is None or all(project.implied for project in self.index.projects):
            return list(listed)
        return [info for info in listed if info.name in self.benchmarks]

    @cached_property
    def query_sets(self) -> tuple[str, ...]:
        """The ids of the query sets for the project's corpora."""
        return tuple(q.id for q in query_sets.list_query_sets(self.index.workspace) if self.has("query_set", q.id))

    def has(self, kind: str, thing: str) -> bool:
        """Return True for a ``corpus``, ``query_set``, ``benchmark`` or ``job`` of this project, or of none."""
        return self._holds(self.index.of(kind, thing)) if self.project else True

    def keep(self, kind: str, things: Iterable[T]) -> list[T]:
        """Return those of ``things`` that belong here, in their order: manifests, jobs, records of benchmarks.

        The project's own benchmarks come before those of no project: what is chosen at first judges its documents.
        ``kind`` may also be ``evaluation``: rows of the catalogue's evaluations.
        """
        listed = list(things)
        if self.project is None:
            return listed

        kept = [thing for thing in listed if self._holds(self._owners(kind, thing))]
        if kind == "benchmark":
            kept.sort(key=lambda thing: not self._owners(kind, thing))
        return kept

    def _owners(self, kind: str, thing: Any) -> frozenset[str]:
        if isinstance(thing, JobView):
            return self.index.of_job(thing)
        if kind == "evaluation":  # of its training (a job's id, or ``<study>.<key>``) and of its benchmark
            run = str(thing["retriever_id"])
            trained = self.index.of_job_id(run) or self.index.of_job_id(run.rpartition(".")[0])
            return trained | self.index.of("benchmark", str(thing["benchmark"]))
        return self.index.of(kind, thing.name if kind == "benchmark" else thing.id)

    def _holds(self, ids: frozenset[str]) -> bool:
        return not ids or (self.project is not None and self.project.id in ids)


def _owners(pairs: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, frozenset[str]]:
    """Return {member: ids of projects} of (project, members) pairs."""
    owners: dict[str, frozenset[str]] = {}
    for project_id, names in pairs:
        for name in names:
            owners[name] = owners.get(name, NOTHING) | {project_id}

    return owners


def check_unused(workspace: Workspace, what: str, name: str) -> None:
    """Raise ConfigError naming the active jobs whose settings or inputs name a thing, or that write it.

    ``what`` describes the thing, as in "The query set x"; ``name`` is its id.
    """
    users = [job for job in jobs.list_active(workspace) if job.id != name and name in _named_by(job)]
    if users:
        shown = some([f"{job.name} ({job.id}, {job.state})" for job in users], 5)

        needs = "an active job" if len(users) == 1 else f"{len(users)} active jobs"
        raise ConfigError(f"{what} is needed by {needs}: {shown}.", hint="Wait until it has ended, or stop it first.")


def _named_by(job: JobView) -> Iterator[str]:
    yield from _texts([job.config, job.inputs])
    if job.kind == "synthesis":  # the query set that it writes
        known = job.config.keys() & SynthesisConfig.settings()  # a job of another version may have others
        with suppress(CdpError):
            yield query_set_id(job.id, SynthesisConfig.from_dict({name: job.config[name] for name in known}))


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in nested settings, whole and item by item where it is a list ("a, b:test")."""
    if isinstance(value, str):
        yield value
        for part in value.split(","):
            yield part.strip()
            yield re.sub(r":\w+$", "", part.strip())
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "name":  # what a job's own result will be called
                yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
