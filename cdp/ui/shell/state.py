"""Selections kept between pages and in the address, back button, project switcher.

A selection is held under the name of its parameter (``corpus``, ``query_set``, ``job`` …) and shared by all pages: the
corpus chosen on one page is the corpus on the next. The address wins over what was chosen before.

Nothing is written to the address while a page is first drawn: every such write would be one more press of the back
button. The first choice on a page writes all selections of that page at once; the menu's links carry them from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

import streamlit as st
from streamlit.elements.lib.mutable_tab_container import TabContainer

from cdp.base.workspace import Workspace
from cdp.services import projects
from cdp.services.projects import ALL, Members, Project
from cdp.ui.shell.tables import cut, md

TAB = "tab"

# Where the selections of the page that is on screen stand.
_DRAWN = "drawn_selections"

# Which page was drawn last, and whether another one is drawn now.
_PAGE, _OPENED = "drawn_page", "page_opened"

# Which selections the address named at the last drawing, and what was chosen before it named them: the way back.
_NAMED, _BEFORE = "named_selections", "selections_before"


def kept(param: str) -> str | None:
    """Return the choice for ``param``, made on this page or another."""
    value = st.session_state.get(f"kept_{param}")
    return value if isinstance(value, str) else None


def kept_many(param: str) -> list[str]:
    """Like ``kept``, for a choice of several."""
    value = st.session_state.get(f"kept_{param}")
    return list(value) if isinstance(value, list) else []


def keep(param: str, value: str | list[str] | None) -> None:
    """Hold a selection for this page and every other."""
    st.session_state[f"kept_{param}"] = value


def labels(items: Mapping[str, str]) -> dict[str, str]:
    """Names made unique: where two things are called the same, the end of the id tells them apart."""
    names = {key: cut(" ".join(name.split()), 90) or key for key, name in items.items()}
    seen = Counter(names.values())
    for key, name in names.items():
        if seen[name] > 1:
            names[key] = f"{name} · {key}"
    return names


def choose(
    label: str,
    items: Mapping[str, str],
    param: str,
    *,
    what: str = "",
    optional: bool = False,
    placeholder: str = "Choose",
    help: str | None = None,
    alone: bool = False,
    width: int | Literal["stretch"] = "stretch",
) -> str | None:
    """A select box over ``items`` (id → name) whose choice is kept and stands in the address as ``?param=id``.

    Without an earlier choice the first item is chosen, or nothing if ``optional``. A link that names something that
    is not here says so and falls back. A choice ``alone`` resets everything else that was chosen.
    """
    names = labels(items)
    _remember(param, names)
    current = _current(names, param, what or label.lower(), optional)
    key = f"choose_{param}"
    _set(key, current)
    st.selectbox(
        label, list(names), index=None if optional or not names else 0, key=key, placeholder=placeholder, width=width,
        format_func=lambda item: names.get(item, str(item)), on_change=_chosen, args=(param, key, alone), help=help,
    )  # fmt: skip

    settle(param, current)
    return current


def tabs(titles: Mapping[str, str]) -> dict[str, TabContainer]:
    """Tabs (id → title); only the open one is to be drawn. The choice is kept, and in the address as ``?tab=id``."""
    _remember(TAB, titles)
    current = _current(titles, TAB, TAB, optional=False) or ""
    key = f"choose_{TAB}"
    _set(key, titles[current])
    containers = st.tabs(list(titles.values()), key=key, on_change=_chosen, args=(TAB, key))
    settle(TAB, current)
    return dict(zip(titles, containers, strict=True))


def _current(names: Mapping[str, str], param: str, what: str, optional: bool) -> str | None:
    """Return the item that the address names, else the earlier choice, else the first (None if ``optional``)."""
    linked = st.query_params.get(param)
    if linked and linked not in names:
        not_here(what, linked)

    for value in (linked, kept(param)):
        if value in names:
            return value
    if optional:
        return None
    return next(iter(names), None)


def not_here(what: str, *named: str) -> None:
    """Say which things of a kind the link names that are not here."""
    of_all = what == PROJECT or kept(PROJECT) in (None, "all")
    where = "workspace" if of_all else "project"
    shown = ", ".join(md(name, 80) for name in named)
    st.warning(f"The link names the {what} {shown}, which {'is' if len(named) == 1 else 'are'} not in this {where}.")


def choose_many(
    label: str,
    items: Mapping[str, str],
    param: str,
    *,
    what: str,
    default: Sequence[str] = (),
    placeholder: str = "Choose one or several",
    help: str | None = None,
    most: int | None = None,
) -> list[str]:
    """A multi-select over ``items`` (id → name), kept and held in the address like ``choose``."""
    names = labels(items)
    _remember(param, names)
    touched = f"kept_{param}" in st.session_state
    usual = kept_many(param) if touched else default
    asked = st.query_params.get_all(param)
    if unknown := [value for value in asked if value not in names]:
        not_here(what, *unknown)
    linked = [value for value in asked if value in names]
    current = linked or [v for v in usual if v in names]
    key = f"choose_{param}"
    _set(key, current)
    st.multiselect(
        label, list(names), format_func=lambda item: names.get(item, str(item)), key=key, placeholder=placeholder,
        on_change=_chosen, args=(param, key), help=help, max_selections=most,
    )  # fmt: skip

    settle(param, current)
    return current


def begin(page: str = "") -> None:
    """Forget the selections of the page drawn before. On a new page every widget is told its choice again: else the
    browser shows its own first option beside the figures of the choice."""
    memory = st.session_state
    memory[_DRAWN] = {}
    memory[_OPENED] = page != memory.get(_PAGE)
    memory[_PAGE] = page
    if memory[_OPENED]:
        memory[_BEFORE] = {}
    for param in memory.get(_NAMED, ()):
        if param not in st.query_params and param in memory.get(_BEFORE, ()):  # the browser went back
            keep(param, memory[_BEFORE][param])
    memory[_NAMED] = list(st.query_params)


def _set(key: str, value: str | list[str] | None) -> None:
    """Tell the widget its choice, if it could show another one."""
    if st.session_state.get(_OPENED) or key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value


def only(param: str, value: str) -> None:
    """Put a new choice into the address alone, and drop the choices that depended on the old one."""
    for key in list(st.session_state):
        if isinstance(key, str) and key.startswith("kept_"):
            del st.session_state[key]
    st.session_state[_DRAWN], st.session_state[_BEFORE] = {}, {}
    keep(param, value)
    st.query_params.from_dict({param: value})


def forget(param: str) -> None:
    """Nothing is chosen for ``param`` any more: the page goes back to what it shows by itself."""
    st.session_state.pop(f"kept_{param}", None)
    for held in (_DRAWN, _BEFORE):
        st.session_state.get(held, {}).pop(param, None)
    if param in st.query_params:
        del st.query_params[param]


def write(param: str, value: str | list[str] | None) -> None:
    """A person chose: the address follows, with everything else that the page shows, as one step back."""
    keep(param, value)
    drawn = st.session_state.get(_DRAWN, {})
    before = dict(st.session_state.get(_BEFORE, {}))
    wanted: dict[str, str | list[str]] = {}

    for name, item in {**drawn, param: value}.items():
        if item:
            wanted[name] = item
        if name in drawn and name not in st.query_params:
            before[name] = drawn[name]

    if not value:
        before.pop(param, None)
        st.query_params.pop(param, None)

    st.session_state[_BEFORE] = before
    st.query_params.update(wanted)


def _chosen(param: str, key: str, alone: bool = False) -> None:
    """Store the choice of a widget that changed. The browser answers with the label that it shows: if that has aged
    since it was drawn ("5 min ago"), Streamlit returns the old label. It is mapped back to its id, or ignored."""
    ids: Mapping[str, str] = st.session_state.get(f"labels_{param}", {})
    value = st.session_state[key]
    picked: str | list[str] | None
    if isinstance(value, list):
        picked = list(filter(None, map(ids.get, value)))
        unknown = len(picked) < len(value)
    else:
        picked = ids.get(value or "") or None
        unknown = bool(value) and picked is None

    aged = value != picked
    if unknown or (aged and picked in (kept(param), kept_many(param))):
        return

    if alone and isinstance(picked, str):
        only(param, picked)
    else:
        write(param, picked)


def _remember(param: str, names: Mapping[str, str]) -> None:
    """Store the id behind each label, old labels included, for the session."""
    ids = st.session_state.setdefault(f"labels_{param}", {})
    for key, label in names.items():
        ids[key] = key
        if label not in names:
            ids[label] = key


def settle(param: str, current: str | list[str] | None) -> None:
    keep(param, current)
    st.session_state.setdefault(_DRAWN, {})[param] = current
    if param not in st.query_params or not current:
        return

    written: str | list[str] | None = st.query_params.get(param)
    if isinstance(current, list):
        written = st.query_params.get_all(param)
    if written != current:  # the address named something that is not here
        st.query_params[param] = current


T = TypeVar("T")

PROJECT = "project"

# Where the session holds what belongs to whom, read once for each drawing of a page.
_INDEX = "project_index"

EVERYTHING = "All projects"

# Selections that tell the project of a link which names none: their parameters, and what kind of thing they name.
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


def switcher(workspace: Workspace) -> None:
    """In the menu: the project on screen, and the way to another one or to everything. Nothing without projects."""
    index = st.session_state[_INDEX] = projects.Index(workspace)
    items = {project.id: project.name for project in index.projects}
    if items:
        items[ALL] = EVERYTHING
        _settle(index, items)
        choose(
            "Project",
            items,
            PROJECT,
            alone=True,
            help="Its documents, benchmarks, queries, jobs and results are what the pages show.",
        )

    for problem in projects.damaged(workspace):
        st.caption(f":material/warning: {md(problem)}")


def project_title(workspace: Workspace) -> str:
    """What a page's head says of it, as Markdown; empty in a workspace without projects."""
    members = scope(workspace)
    if not members.index.projects:
        return ""
    if members.project is None:
        return EVERYTHING
    return f"**{md(members.project.name, 60)}**"


def scope(workspace: Workspace) -> Members:
    """What belongs to the project on screen; everything does where ``EVERYTHING`` is chosen."""
    index = st.session_state.get(_INDEX)
    if not isinstance(index, projects.Index) or index.workspace != workspace:
        index = projects.Index(workspace)

    known = {project.id: project for project in index.projects}
    _settle(index, known)
    chosen = st.query_params.get(PROJECT)
    if chosen not in {*known, ALL}:
        chosen = kept(PROJECT)
    return Members(known.get(chosen or ""), index)


def of_project(workspace: Workspace, kind: str, things: Iterable[T]) -> list[T]:
    """Those of ``things`` that belong to the project on screen, or to none; see ``Members.keep``."""
    return scope(workspace).keep(kind, things)


def elsewhere(workspace: Workspace, job_id: str) -> Project | None:
    """The project that a job belongs to, where it is another one than that on screen."""
    members = scope(workspace)
    owners = members.index.of("job", job_id)
    if not owners or (members.project is not None and members.project.id in owners):
        return None
    return next(project for project in members.index.projects if project.id in owners)


def _settle(index: projects.Index, known: Collection[str]) -> None:
    """Hold the project that the address means: the one it names, else that of the things it names, else the last one
    that was on screen, else the newest."""
    if st.query_params.get(PROJECT) in {*known, ALL}:
        return
    before = kept(PROJECT)
    if before == ALL:
        return

    owners = _owners(index)
    if before in known and (not owners or before in owners):
        return

    newest = (project.id for project in index.projects if not owners or project.id in owners)
    keep(PROJECT, next(newest, None))


def _owners(index: projects.Index) -> frozenset[str]:
    """The projects of the first thing that the address names and that belongs to any."""
    for param, kind in NAMING:
        linked = st.query_params.get(param)
        owners = index.of(kind, linked) if linked else frozenset[str]()
        if owners:
            return owners
    return frozenset()
