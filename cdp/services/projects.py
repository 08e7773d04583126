"""Projects: the corpora and benchmarks that belong together, and with them their queries, jobs and results.

``members(workspace, project_id)`` says what belongs to a project; a list is cut down with it where it is shown. A
corpus in no project stands for one of its own name (``implied``), which is made when something is changed on it. A
benchmark in no project belongs to none, and is for all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from cdp import jobs, projects, query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, ConfigError, NotFoundError
from cdp.base.text import checked_title, pick
from cdp.base.workspace import Workspace, is_name
from cdp.benchmarks import library
from cdp.corpus import list_corpora, resolve_corpus
from cdp.jobs import JobSpec, JobView
from cdp.projects import Project, damaged
from cdp.services import access
from cdp.synthesis.work import query_set_id

__all__ = ["ALL", "Index", "Members", "Project", "damaged"]

# In place of a project: everything in the workspace, of all projects.
ALL = "all"


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
) -> Project:
    """A new project with these members. ConfigError where another one has the name."""
    title = _title(workspace, name)
    return projects.create(
        workspace,
        title,
        corpora=_corpora(workspace, corpora),
        benchmarks=_benchmarks(workspace, benchmarks),
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
    """A name that can be stored and is not taken."""
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


T = TypeVar("T")

NOTHING: frozenset[str] = frozenset()


class Index:
    """Who belongs to whom in a workspace, as it is now; what takes longer to read is read when it is asked for."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._of_job: dict[str, frozenset[str]] = {}

    @cached_property
    def projects(self) -> list[Project]:
        """All projects, the newest first; a corpus that is in none stands for one of its own."""
        made = projects.list_projects(self.workspace)
        inside = {corpus for project in made for corpus in project.corpora}
        implied = [
            Project(manifest.id, manifest.name, manifest.created, corpora=(manifest.id,), implied=True)
            for manifest in list_corpora(self.workspace)
            if manifest.id not in inside
        ]
        # A project that was emptied may still have the id of a corpus that once was implied: the record wins.
        ids = {project.id for project in made}
        return sorted(
            [*made, *(project for project in implied if project.id not in ids)],
            key=lambda project: (project.created, project.id),
            reverse=True,
        )

    @cached_property
    def _corpora(self) -> dict[str, frozenset[str]]:
        return _by_member((project.id, project.corpora) for project in self.projects)

    @cached_property
    def _benchmarks(self) -> dict[str, frozenset[str]]:
        return _by_member((project.id, project.benchmarks) for project in self.projects)

    @cached_property
    def _corpus_of_set(self) -> dict[str, str]:
        sets = query_sets.list_query_sets(self.workspace)
        # Old plans name query sets by their names; an id that is the same wins.
        return {**{item.name: item.corpus_id for item in sets}, **{item.id: item.corpus_id for item in sets}}

    @cached_property
    def _job_ids(self) -> frozenset[str]:
        try:
            return frozenset(os.listdir(self.workspace.jobs))
        except FileNotFoundError:
            return NOTHING

    def of(self, kind: str, thing: str) -> frozenset[str]:
        """The ids of the projects of a ``corpus``, ``query_set``, ``benchmark`` or ``job`` with this id."""
        if kind == "corpus":
            return self._corpora.get(thing, NOTHING)
        if kind == "benchmark":
            return self._benchmarks.get(thing, NOTHING)
        if kind == "query_set":
            return self.of("corpus", self._corpus_of_set.get(thing, ""))
        if kind == "job":
            return self.of_job_id(thing)
        raise ValueError(f"{kind!r} is no kind of thing in a project")

    def of_job_id(self, job_id: str) -> frozenset[str]:
        """The projects of a job; none where there is no such job."""
        if job_id not in self._of_job:
            self._of_job[job_id] = NOTHING  # a job that names itself, or two that name each other, end here
            if is_name(job_id) and (self.workspace.jobs / job_id).is_dir():
                with suppress(CdpError):
                    self._of_job[job_id] = self._of_spec(jobs.load_spec(self.workspace, job_id))
        return self._of_job[job_id]

    def of_job(self, job: JobView) -> frozenset[str]:
        """The projects of a job that was read already."""
        if job.id not in self._of_job:
            self._of_job[job.id] = NOTHING
            self._of_job[job.id] = self._of_spec(job)
        return self._of_job[job.id]

    def of_evaluation(self, retriever: str, benchmark: str) -> frozenset[str]:
        """The projects of a score: those of the training (its job's id, or ``<study>.<key>``) and of the benchmark."""
        trained = self.of_job_id(retriever) or self.of_job_id(retriever.rpartition(".")[0])
        return trained | self.of("benchmark", benchmark)

    def _of_spec(self, job: JobSpec | JobView) -> frozenset[str]:
        config, inputs = job.config, job.inputs
        judged = frozenset[str]().union(*(self.of("benchmark", name) for name in _benchmarks_of(config)))
        if job.kind == "evaluation":
            return self.of_job_id(str(config.get("retriever", ""))) | judged
        named = set(_texts([config, inputs]))
        corpora = {name for name in named if name in self._corpora}
        corpora |= {self._corpus_of_set[name] for name in named if name in self._corpus_of_set}
        own = frozenset[str]().union(*(self.of("corpus", corpus) for corpus in corpora))
        if own:
            return own
        others = frozenset[str]().union(*(self.of_job_id(name) for name in named & self._job_ids if name != job.id))
        return others or judged


@dataclass(frozen=True)
class Members:
    """What belongs to ``project``; everything where it is None.

    ``has_…`` are true for what belongs to the project, and for what belongs to no project at all.
    """

    project: Project | None
    index: Index

    @property
    def corpora(self) -> tuple[str, ...]:
        """The ids of the project's corpora; of all corpora without a project."""
        return self.project.corpora if self.project else tuple(self.index._corpora)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The names of the project's own benchmarks; those that are for all are not among them."""
        return self.project.benchmarks if self.project else tuple(self.index._benchmarks)

    @cached_property
    def query_sets(self) -> tuple[str, ...]:
        """The ids of the query sets for the project's corpora."""
        return tuple(q.id for q in query_sets.list_query_sets(self.index.workspace) if self.has("query_set", q.id))

    def has(self, kind: str, thing: str) -> bool:
        """Whether a ``corpus``, ``query_set``, ``benchmark`` or ``job`` is of this project, or of none."""
        return self._holds(self.index.of(kind, thing)) if self.project else True

    def has_job(self, job: JobView) -> bool:
        """``has`` for a job that was read already."""
        return self._holds(self.index.of_job(job)) if self.project else True

    def has_evaluation(self, retriever: str, benchmark: str) -> bool:
        """``has`` for a score, by the ids of its retriever and its benchmark."""
        return self._holds(self.index.of_evaluation(retriever, benchmark)) if self.project else True

    def keep(self, kind: str, things: Iterable[T]) -> list[T]:
        """Those of ``things`` that ``has`` is true for, in their order: manifests, jobs, records of benchmarks.

        ``kind`` may also be ``evaluation``: rows of the catalogue's evaluations.
        """
        listed = list(things)
        if self.project is None:
            return listed
        for thing in listed:  # what was read already is not read again for the evaluations of it
            if isinstance(thing, JobView) and thing.kind != "evaluation":
                self.index.of_job(thing)
        return [thing for thing in listed if self._has_thing(kind, thing)]

    def _has_thing(self, kind: str, thing: Any) -> bool:
        if isinstance(thing, JobView):
            return self.has_job(thing)
        if kind == "evaluation":
            # A hybrid or reranked result belongs where its retriever does.
            of = thing.get("settings", {}).get("retriever") or thing["retriever_id"]
            return self.has_evaluation(str(of), str(thing["benchmark"]))
        return self.has(kind, str(_of(thing, "name" if kind == "benchmark" else "id")))

    def _holds(self, ids: frozenset[str]) -> bool:
        return not ids or (self.project is not None and self.project.id in ids)


def _of(thing: Any, name: str) -> Any:
    return thing[name] if isinstance(thing, Mapping) else getattr(thing, name)


def _benchmarks_of(config: Mapping[str, Any]) -> Iterator[str]:
    """Each benchmark that settings name: not every text, for one may be called "test"."""
    for name in ("benchmark", "benchmarks", "dev"):
        yield from _texts(config.get(name, ""))


def _by_member(pairs: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, frozenset[str]]:
    owners: dict[str, set[str]] = {}
    for project_id, names in pairs:
        for name in names:
            owners.setdefault(name, set()).add(project_id)
    return {name: frozenset(ids) for name, ids in owners.items()}


def check_unused(workspace: Workspace, what: str, name: str) -> None:
    """Raise ConfigError naming the active jobs whose settings or inputs name a thing, or that write it.

    ``what`` describes the thing, as in "The query set x"; ``name`` is its id.
    """
    users = [job for job in jobs.list_active(workspace) if job.id != name and name in _named_by(job)]
    if not users:
        return
    shown = ", ".join(f"{job.name} ({job.id}, {job.state})" for job in users[:5])
    more = f" and {len(users) - 5} more" if len(users) > 5 else ""
    needs = "an active job" if len(users) == 1 else f"{len(users)} active jobs"
    raise ConfigError(f"{what} is needed by {needs}: {shown}{more}.", hint="Wait until it has ended, or stop it first.")


def _named_by(job: JobView) -> Iterator[str]:
    yield from _texts([job.config, job.inputs])
    if job.kind == "synthesis":  # the query set that it writes
        settings = SynthesisConfig.settings()  # a job of another version may have others
        with suppress(CdpError):
            config = SynthesisConfig.from_dict({k: v for k, v in job.config.items() if k in settings})
            yield query_set_id(job.id, config)


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
