"""Which project is on screen: chosen in the menu, named in the address (``?project=id``), carried by every link.

A page keeps of each list what is the project's: ``keep(workspace, "corpus", corpora.list_corpora(workspace))``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import projects
from cdp.services.projects import ALL, Members, Project
from cdp.ui.shell import state
from cdp.ui.shell.text import md

T = TypeVar("T")

PARAM = "project"

_INDEX = "project_index"
"""Where the session holds what belongs to whom, read once for each drawing of a page."""

EVERYTHING = "All projects"

NAMING = (
    ("corpus", "corpus"),
    ("query_set", "query_set"),
    ("sets", "query_set"),
    ("job", "job"),
    ("study", "job"),
    ("baseline", "job"),
    ("judged", "job"),
    ("target_set", "query_set"),
    ("target_benchmark", "benchmark"),
)
"""Selections that tell the project of a link which names none: their parameters, and what kind of thing they name."""


def switcher(workspace: Workspace) -> None:
    """In the menu: the project on screen, and the way to another one or to everything. Nothing without projects."""
    index = st.session_state[_INDEX] = projects.Index(workspace)
    items = {project.id: project.name for project in index.projects}
    if items:
        items[ALL] = EVERYTHING
        _settle(index, items)
        state.choose(
            "Project",
            items,
            PARAM,
            alone=True,
            help="Its documents, benchmarks, queries, jobs and results are what the pages show.",
        )
    for problem in projects.damaged(workspace):
        st.caption(f":material/warning: {md(problem)}")


def current_project(workspace: Workspace) -> Project | None:
    """The project on screen; None where everything is shown, or nothing is there."""
    return scope(workspace).project


def title(workspace: Workspace) -> str:
    """What a page's head says of it, as Markdown; empty in a workspace without projects."""
    members = scope(workspace)
    if not members.index.projects:
        return ""
    return f"**{md(members.project.name, 60)}**" if members.project else EVERYTHING


def scope(workspace: Workspace) -> Members:
    """What belongs to the project on screen; everything does where ``EVERYTHING`` is chosen."""
    index = _index(workspace)
    ids = {project.id for project in index.projects}
    _settle(index, ids)
    chosen = st.query_params.get(PARAM)
    if chosen not in {*ids, ALL}:
        chosen = state.kept(PARAM)
    return Members(next((project for project in index.projects if project.id == chosen), None), index)


def keep(workspace: Workspace, kind: str, things: Iterable[T]) -> list[T]:
    """Those of ``things`` that belong to the project on screen, or to none; see ``Members.keep``."""
    return scope(workspace).keep(kind, things)


def join(workspace: Workspace, *, corpora: Sequence[str] = (), benchmarks: Sequence[str] = ()) -> None:
    """What was added on a page joins the project on screen, if one is."""
    current = current_project(workspace)
    if current is not None:
        projects.add_members(workspace, current.id, corpora=corpora, benchmarks=benchmarks)


def show(workspace: Workspace, kind: str, thing: str) -> None:
    """Turn to the project of a thing that was added; everything else that was chosen is forgotten."""
    owner = projects.project_of(workspace, kind, thing)
    if owner is not None:
        state.only(PARAM, owner.id)


def elsewhere(workspace: Workspace, job_id: str) -> Project | None:
    """The project that a job belongs to, where it is another one than that on screen."""
    members = scope(workspace)
    owners = members.index.of("job", job_id)
    if not owners or (members.project is not None and members.project.id in owners):
        return None
    return next(project for project in members.index.projects if project.id in owners)


def _index(workspace: Workspace) -> projects.Index:
    index = st.session_state.get(_INDEX)
    if isinstance(index, projects.Index) and index.workspace == workspace:
        return index
    return projects.Index(workspace)


def _settle(index: projects.Index, known: dict[str, str] | set[str]) -> None:
    """Hold the project that the address means: the one it names, else that of the things it names, else the last one
    that was on screen, else the newest."""
    if st.query_params.get(PARAM) in {*known, ALL}:
        return
    before = state.kept(PARAM)
    if before == ALL:
        return
    owners = next((ids for ids in (_owners(index, *naming) for naming in NAMING) if ids), frozenset[str]())
    if before in known and (not owners or before in owners):
        return
    newest = (project.id for project in index.projects if not owners or project.id in owners)
    state.keep(PARAM, next(newest, None))


def _owners(index: projects.Index, param: str, kind: str) -> frozenset[str]:
    linked = st.query_params.get(param)
    return index.of(kind, linked) if linked else frozenset()
